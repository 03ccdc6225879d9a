"""byok prompts list, show, diff and check."""

import json
import os
from pathlib import Path

import pytest

from byok.cli.prompts import check_conditions, situation_of, tools_named
from byok.core.errors import BadRequest, ConfigError
from byok.core.platform.paths import find_paths
from byok.core.prompts.prompt_set import (
    PromptSet,
    Situation,
    shipped_prompts,
    shipped_texts,
)
from tests.fakes.broken_prompts import BROKEN
from tests.fakes.commands import Cli
from tests.fakes.prompts import prompts

SETTINGS = """
[upstreams.box]
base_url = "http://127.0.0.1:9/v1"
[upstreams.box.facts."my/model"]
family = "glm"
window = 4096
[routing.aliases]
mine = "byok:box:my/model"
"""


@pytest.fixture
def folder() -> Path:
    made = find_paths().prompts
    made.mkdir(parents=True, mode=0o700)
    return made


def test_list_tells_whose_text_counts(cli: Cli, folder: Path) -> None:
    (folder / "agent.md").write_text("{{shipped}}\nMine.")
    (folder / "title.small.md").write_text("Mine.")
    (folder / "chat.md").write_text("{{oops}}")
    (folder / "\x1b[2Jchat").write_text("x")
    (folder / os.fsdecode(b"\xff")).write_text("x")
    done = cli("prompts", "list")
    assert done.code == 0
    rows = {line.split()[0]: line.rstrip() for line in done.out.splitlines()}
    assert {*shipped_texts()} < {*rows}
    assert rows["commit"].endswith("shipped")
    assert rows["agent"].endswith("your own")
    assert rows["agent.small"].endswith("shipped, not used: your own counts")
    assert rows["title.small"].endswith("your own")
    assert rows["chat"].endswith("your own, broken")
    assert rows[r"\x1b[2Jchat"].endswith("your own, broken")
    assert rows[r"\xff"].endswith("your own, broken")
    assert "byok prompts check" in done.err
    told = {
        row["name"]: row for row in json.loads(cli("prompts", "list", "--json").out)
    }
    assert (told["commit"]["valid"], told["chat"]["valid"]) == (True, False)
    assert told["chat"]["problems"][0].startswith("chat.md:1: {{oops}} is no slot.")
    assert told["agent"]["tokens"] > 500 > told["title.small"]["tokens"] > 0


def test_show_prints_what_a_model_is_told(cli: Cli) -> None:
    bare = cli("prompts", "show", "agent")
    assert (bare.code, bare.out) == (
        0,
        shipped_prompts().render("agent").text + "\n",
    )
    assert bare.err.startswith("This is agent, about ")
    view = cli("prompts", "show", "agent", "--tool", "view")
    assert "`view`" in view.out
    assert "`save-file`" not in view.out
    every = cli("prompts", "show", "agent", "--all-tools", "--if", "snippets")
    assert "`save-file`" in every.out
    assert "augment_code_snippet" in every.out
    source = cli("prompts", "show", "agent", "--source")
    assert source.out == shipped_texts()["agent"].rstrip("\n") + "\n"


def test_show_prints_what_suits_a_model_and_its_window(cli: Cli) -> None:
    small = cli("prompts", "show", "agent", "--model", "qwen3:8b")
    assert small.err.startswith("This is agent.small, about ")
    assert "English" in small.out  # what is for its family
    plain = cli("prompts", "show", "agent", "--model", "llama3.2:1b")
    assert plain.out == cli("prompts", "show", "agent.small").out
    short = cli("prompts", "show", "agent", "--window", "4096")
    assert "Note: agent.small is used instead of agent for the " in short.err


def test_show_prints_the_users_own(cli: Cli, folder: Path) -> None:
    (folder / "title.md").write_text("{{shipped}}\n\x1b]0;x\aMine.")
    done = cli("prompts", "show", "title", "--model", "qwen3:8b")
    shipped = shipped_prompts().render("title").text
    assert done.out == f"{shipped}\n\\x1b]0;x\\x07Mine.\n"
    assert done.err.startswith("This is own title, about ")
    source = cli("prompts", "show", "title", "--source")
    assert source.out == "{{shipped}}\n\\x1b]0;x\\x07Mine.\n"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["show", "agnt"], 1, "agnt: no prompt has this name.\n  Did you mean agent?"),
        (["show", "agent.tiny"], 1, "agent.tiny: there is no such variant."),
        (["show", "../x"], 1, "../x: no prompt has this name."),
        (["show", "agent", "--if", "x"], 1, "x is no condition of agent."),
        (["show", "title", "--if", "x"], 1, "This prompt has none."),
        (["show", "agent.small", "--model", "m"], 1, "Leave out --model, or .small."),
        (["show", "title.small", "--source"], 1, "byok prompts edit title.small"),
        (["diff", "agnt"], 1, "Did you mean agent?"),
    ],
    ids=["name", "variant", "path", "condition", "none", "both", "no file", "diff"],
)
def test_what_does_not_exist_is_told_with_a_cure(
    cli: Cli, arguments: list[str], code: int, said: str
) -> None:
    done = cli("prompts", *arguments)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


def test_a_broken_own_text_is_not_shown_as_another(cli: Cli, folder: Path) -> None:
    (folder / "title.md").write_text("{{oops}}")
    done = cli("prompts", "show", "title")
    assert (done.code, done.out) == (78, "")
    assert "title.md:1: {{oops}} is no slot." in done.err
    assert cli("prompts", "show", "title", "--source").out == "{{oops}}\n"
    (folder / "title.md").write_bytes(b"\xff")
    done = cli("prompts", "show", "title", "--source")
    assert (done.code, done.out) == (78, "")


def test_diff_shows_only_what_the_user_changed(cli: Cli, folder: Path) -> None:
    (folder / "agent.md").write_text("{{shipped}}\nMine.\x1b[2J\n")
    (folder / "title.small.md").write_text("{{ shipped }}")
    done = cli("prompts", "diff")
    lines = done.out.splitlines()
    assert lines[:2] == ["--- shipped/agent.md", "+++ own/agent.md"]
    changed = [line for line in lines[2:] if line[:1] in "+-"]
    assert changed == ["+Mine.\\x1b[2J"]
    assert done.err == "title.small: your own is the shipped text.\n"
    (folder / "agent.md").write_text("Mine.\n")
    done = cli("prompts", "diff", "agent")
    assert "\n+Mine.\n" in done.out
    assert done.out.count("\n-") > 20


@pytest.mark.parametrize(
    ("name", "said"),
    [("", "You have no prompts of your own"), ("agent", "You have no prompts of")],
)
def test_diff_says_that_there_is_nothing(cli: Cli, name: str, said: str) -> None:
    done = cli("prompts", "diff", *filter(None, [name]))
    assert (done.code, done.out) == (0, "")
    assert said in done.err


def test_diff_tells_files_that_cannot_be_read(cli: Cli, folder: Path) -> None:
    (folder / "agent.md").mkdir()
    (folder / "chat.md").write_text("Mine.")
    done = cli("prompts", "diff")
    assert done.code == 78
    assert "+Mine." in done.out
    assert "agent.md: it is no file." in done.err
    done = cli("prompts", "diff", "chat")
    assert (done.code, done.err) == (0, "")
    done = cli("prompts", "diff", "title")
    assert (done.code, done.out) == (0, "")
    assert "You have no title of your own" in done.err


@pytest.mark.parametrize("broken", list(BROKEN))
def test_check_tells_file_line_and_cure(cli: Cli, folder: Path, broken: str) -> None:
    make, told, cure = BROKEN[broken]
    make(folder)
    done = cli("prompts", "check")
    assert done.code == 78
    first = done.out.splitlines()[0]
    assert first.startswith(told)
    assert cure in first
    assert done.out.replace("\n", "").isprintable()
    assert f" in {folder}\n" in done.err
    assert "SECRET" not in done.out + done.err


def test_check_says_that_all_is_well(cli: Cli, folder: Path) -> None:
    assert cli("prompts", "check").out == f"{folder}: 0 prompts of your own, valid\n"
    (folder / "agent.md").write_text("{{shipped}}")
    done = cli("prompts", "check")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{folder}: 1 prompt of your own, valid\n"


@pytest.mark.parametrize(
    ("model", "variants"),
    [
        ("", ()),
        ("qwen3:8b", ("small", "qwen")),
        ("meta-llama/Llama-3.1-8B-Instruct", ("small",)),
        ("openai/gpt-5", ("gpt", "reasoning")),
        ("box/my/model", ("short", "glm")),
        ("byok:box:my/model", ("short", "glm")),
        ("byok:mine", ("short", "glm")),
        ("mine", ("short", "glm")),
        ("my/model", ()),
        ("\x1b[2J", ()),
    ],
)
def test_a_model_is_found_by_its_names_without_asking(
    model: str, variants: tuple[str, ...]
) -> None:
    file = find_paths().config
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(SETTINGS)
    file.chmod(0o600)
    assert situation_of("", model, 0).variants == variants


def test_a_window_counts_before_the_one_that_is_known() -> None:
    assert situation_of("", "openai/gpt-5", 0).window > 100_000
    assert situation_of("", "openai/gpt-5", 5000) == Situation(
        ("short", "gpt", "reasoning"), 5000
    )
    assert situation_of("small", "", 5000) == Situation(("small",), 5000)


def test_an_upstream_that_is_not_there_is_told() -> None:
    with pytest.raises(ConfigError):
        situation_of("", "byok:gone:m", 0)


@pytest.mark.parametrize(
    ("kind", "condition", "hint"),
    [
        ("agent", "tool:view", "A tool is given by: --tool view"),
        ("title", "tool:view", "This prompt has none."),
        ("agent", "family:qwen", "The family is that of a model: --model MODEL"),
        ("agent", "family:x", "Known are: parallel, snippets."),
    ],
)
def test_a_condition_of_another_option_is_told_with_it(
    kind: str, condition: str, hint: str
) -> None:
    with pytest.raises(BadRequest) as raised:
        check_conditions(kind, [condition])
    assert raised.value.hint == hint


def test_the_tools_of_all_texts_of_a_prompt_are_found() -> None:
    own = prompts(agent__small="{{^tool:d|e}}x{{/}}", chat="{{#tool:f}}x{{/}}")
    shipped = prompts(agent="{{#tool:a|b}}{{#parallel}}{{#tool:c}}{{/}}{{/}}{{/}}")
    both = PromptSet(shipped.templates, own.templates)
    assert tools_named(both, "agent") == {"a", "b", "c", "d", "e"}
