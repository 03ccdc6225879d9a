"""What models are told, as files: a change of a prompt is read as a difference.

`python -m tools.write_golden_prompts` writes the files anew.
"""

import difflib
from pathlib import Path

import pytest

from byok.core.prompts.prompt_set import FAMILIES
from tests.fakes.occasions import OCCASIONS, Occasion

GOLDEN = Path(__file__).parent / "golden"
CURE = "If that is meant: python -m tools.write_golden_prompts"
every = pytest.mark.parametrize("occasion", OCCASIONS, ids=lambda o: o.name)


@every
def test_a_model_is_told_what_the_golden_file_says(occasion: Occasion) -> None:
    path = GOLDEN / f"{occasion.name}.txt"
    wanted = path.read_text("utf-8") if path.exists() else ""
    told = occasion.golden()
    if told != wanted:
        lines = difflib.unified_diff(
            wanted.splitlines(), told.splitlines(), path.name, "now", lineterm="", n=1
        )
        pytest.fail("\n".join((*lines, CURE)), pytrace=False)


def test_every_golden_file_has_its_occasion() -> None:
    names = [occasion.name for occasion in OCCASIONS]
    assert sorted(path.stem for path in GOLDEN.iterdir()) == sorted(names)
    assert len(names) >= 12


def test_the_occasions_show_every_family_and_variant() -> None:
    shown = {variant for o in OCCASIONS for variant in o.defaults().fit.variants}
    assert shown >= {*FAMILIES, "short", "small", "reasoning"}
