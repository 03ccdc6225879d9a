"""What models are told, as files: a change of a prompt is read as a difference.

`python -m tools.write_golden_prompts` writes the files anew.
"""

import difflib
from pathlib import Path

import pytest

from byok.core.platform.paths import find_paths
from byok.core.prompts.prompt_set import FAMILIES
from byok.settings import Settings
from byok.settings.keys import KeyLadder
from byok.upstream.base import Destination
from byok.wiring.services import open_services
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


@every
async def test_the_settings_give_the_same_prompt(occasion: Occasion) -> None:
    facts = {occasion.model: {"window": occasion.window}}
    box = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "facts": facts}
    chat = {"system_prompt": occasion.settings.get("system_prompt", "")}
    addition = {"chat-stream": occasion.settings.get("addition", "")}
    settings = Settings.model_validate(
        {"upstreams": {"box": box}, "chat": chat, "prompts": addition}
    )
    ladder = KeyLadder(environ={})
    async with open_services(settings, find_paths(), ladder=ladder) as services:
        asked = Destination(services.upstreams["box"], occasion.model)
        found = services.defaults("/chat-stream", asked, "c")
    ours = occasion.defaults()
    assert (found.fit, found.system_prompt, found.addition) == (
        ours.fit,
        ours.system_prompt,
        ours.addition,
    )
