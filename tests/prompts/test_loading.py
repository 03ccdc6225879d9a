"""The prompts in the user's folder: what is read, and what is refused."""

import os
from pathlib import Path

import pytest

from byok.errors import ConfigError
from byok.prompts.checking import LARGEST
from byok.prompts.loading import check_folder, load_prompts
from byok.prompts.prompt_set import Situation
from byok.prompts.shipped import shipped_prompts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "prompts"
    made.mkdir()
    return made


def test_without_a_folder_the_shipped_prompts_are_used(tmp_path: Path) -> None:
    assert load_prompts(tmp_path / "none").version == shipped_prompts().version


def test_a_file_takes_the_place_of_the_shipped_text(folder: Path) -> None:
    (folder / "title.md").write_bytes(b"\xef\xbb\xbfName it.\r\nShortly.\r\n")
    found = load_prompts(folder)
    assert found.render("title").text == "Name it.\nShortly."
    assert found.render("commit") == shipped_prompts().render("commit")
    assert found.version != shipped_prompts().version


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


def test_names_that_begin_with_a_dot_are_left_alone(folder: Path) -> None:
    (folder / ".title.md.swp").write_text("x")
    assert check_folder(folder) == ({}, [])


def _outside(folder: Path) -> None:
    (folder.parent / "secret").write_text("x")
    (folder / "agent.md").symlink_to(folder.parent / "secret")


BROKEN = {
    "a folder": (lambda f: (f / "agent.md").mkdir(), "agent.md: it is no file"),
    "a link outwards": (_outside, "agent.md: it is a link that leads out"),
    "a dangling link": (
        lambda f: (f / "agent.md").symlink_to(f / "none"),
        "agent.md: it cannot be read (No such file or directory)",
    ),
    "a pipe": (lambda f: os.mkfifo(f / "agent.md"), "agent.md: it is no file"),
    "not UTF-8": (
        lambda f: (f / "agent.md").write_bytes(b"a\n\xff"),
        "agent.md:2: it is not UTF-8. Save it as UTF-8.",
    ),
    "ten megabytes": (
        lambda f: (f / "agent.md").write_bytes(b"x" * 10_000_000),
        f"agent.md: it is larger than {LARGEST // 1024} KiB",
    ),
    "an unknown name": (
        lambda f: (f / "agents.md").write_text("x"),
        "agents.md: no prompt has this name. Did you mean agent?",
    ),
    "another kind of file": (
        lambda f: (f / "README.txt").write_text("x"),
        "README.txt: it is no prompt. Name it NAME.md, or keep it elsewhere.",
    ),
    "an unknown slot": (
        lambda f: (f / "chat.md").write_text("\n{{who}}"),
        "chat.md:2: {{who}} is no slot",
    ),
    "an open section": (
        lambda f: (f / "chat.md").write_text("{{#snippets}}"),
        "chat.md:1: snippets is not closed",
    ),
}


@pytest.mark.parametrize("broken", list(BROKEN))
def test_a_broken_folder_is_refused_with_what_to_do(folder: Path, broken: str) -> None:
    make, said = BROKEN[broken]
    make(folder)  # type: ignore[no-untyped-call]
    _, problems = check_folder(folder)
    assert [str(problem)[: len(said)] for problem in problems] == [said]
    assert problems[0].cure
    with pytest.raises(ConfigError) as raised:
        load_prompts(folder)
    assert said in str(raised.value)
    assert "byok prompts check" in raised.value.hint
