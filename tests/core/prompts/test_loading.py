"""The prompts in the user's folder: what counts, and what is refused."""

from pathlib import Path

import pytest

from byok.core.errors import ConfigError
from byok.core.prompts.own_files import check_folder, load_prompts, read_prompt
from byok.core.prompts.prompt_set import KINDS, VARIANTS, Situation, shipped_prompts
from byok.core.prompts.template import Template
from tests.fakes.prompts import BROKEN


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "prompts"
    made.mkdir()
    return made


def test_a_file_may_add_to_the_shipped_text(folder: Path) -> None:
    (folder / "agent.md").write_text(
        "{{shipped}}\n\nUse `make`{{#tool:view}} now{{/}}."
    )
    for variants in ((), ("small",), ("short", "small")):
        situation = Situation(variants, tools=frozenset({"view"}))
        said = load_prompts(folder).render("agent", situation)
        shipped = shipped_prompts().render("agent", situation)
        assert said.text == f"{shipped.text}\n\nUse `make` now."
        assert said.name == "own agent"


def test_a_variant_that_is_not_shipped_adds_to_the_whole_text(folder: Path) -> None:
    (folder / "title.small.md").write_text("{{shipped}} Please.")
    said = load_prompts(folder).render("title", Situation(("small",)))
    shipped = shipped_prompts().render("title")
    assert said.text == f"{shipped.text} Please."
    assert said.name == "own title.small"


def test_an_own_text_for_all_models_counts_for_small_ones(folder: Path) -> None:
    (folder / "agent.md").write_text("Mine.")
    said = load_prompts(folder).render("agent", Situation(("short", "small"), 4096))
    assert said == ("Mine.", "own agent", "")


@pytest.mark.parametrize("broken", list(BROKEN))
def test_a_broken_folder_is_refused_with_what_to_do(folder: Path, broken: str) -> None:
    make, told, cure = BROKEN[broken]
    make(folder)
    _, problems = check_folder(folder)
    assert str(problems[0]).startswith(told)
    assert cure in str(problems[0])
    assert str(problems[0]).isprintable()
    with pytest.raises(ConfigError) as raised:
        load_prompts(folder)
    assert str(raised.value).startswith(told)
    assert "byok prompts check" in raised.value.hint
    assert "SECRET" not in str(raised.value)


def test_of_many_problems_the_first_are_told(folder: Path) -> None:
    for number in range(40):
        (folder / f"{number:02}.md").write_text("x")
    with pytest.raises(ConfigError) as raised:
        load_prompts(folder)
    lines = str(raised.value).splitlines()
    assert (len(lines), lines[-1]) == (11, "and 30 more")


def test_every_prompt_may_add_to_the_shipped_one() -> None:
    for kind in KINDS:
        for variant in ("", *VARIANTS):
            name = f"{kind}.{variant}".rstrip(".")
            assert isinstance(read_prompt(name, "{{shipped}}\nMore."), Template)
