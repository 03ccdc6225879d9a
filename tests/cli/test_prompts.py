"""byok prompts, and the user's editor."""

import io
import json
import os
import signal
import stat
import sys
from pathlib import Path

import pytest

from byok.cli.prompts import check_conditions, find_editor, open_editor, situation_of
from byok.core.errors import BadRequest
from byok.core.platform.paths import find_paths
from byok.core.platform.programs import find_program
from byok.core.prompts.prompt_set import shipped_prompts, shipped_texts
from tests.fakes.commands import Cli
from tests.fakes.daemon import daemon_thread, write_settings
from tests.fakes.prompts import BROKEN

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
    assert (bare.code, bare.out) == (0, shipped_prompts().render("agent").text + "\n")
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


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["show", "agnt"], 1, "agnt: no prompt has this name.\n  Did you mean agent?"),
        (["show", "../x"], 1, "../x: no prompt has this name."),
        (["show", "agent", "--if", "x"], 1, "x is no condition of agent."),
        (["show", "agent.small", "--model", "m"], 1, "Leave out --model, or .small."),
        (["show", "title.small", "--source"], 1, "byok prompts edit title.small"),
    ],
)
def test_what_does_not_exist_is_told_with_a_cure(
    cli: Cli, arguments: list[str], code: int, said: str
) -> None:
    done = cli("prompts", *arguments)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


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


def test_diff_says_that_there_is_nothing(cli: Cli) -> None:
    done = cli("prompts", "diff", "agent")
    assert (done.code, done.out) == (0, "")
    assert "You have no prompts of" in done.err


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
    assert f"{folder}: " in done.err
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
        ("openai/gpt-5", ("gpt", "reasoning")),
        ("box/my/model", ("short", "glm")),
        ("byok:mine", ("short", "glm")),
        ("my/model", ()),
    ],
)
def test_a_model_is_found_by_its_names_without_asking(
    model: str, variants: tuple[str, ...]
) -> None:
    write_settings(SETTINGS)
    assert situation_of("", model, 0).variants == variants


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


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An editor that adds the text of $ADDS to the file."""
    if os.name != "posix":
        pytest.skip("scripts for POSIX")
    made = tmp_path / "editor"
    made.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        "open(sys.argv[1], 'a').write(os.environ.get('ADDS', ''))\n"
        "sys.exit(int(os.environ.get('CODE', '0')))\n"
    )
    made.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(made))
    return made


@pytest.fixture
def own_folder() -> Path:
    return find_paths().prompts


@pytest.mark.usefixtures("editor")
def test_a_new_text_adds_to_the_shipped_one_and_is_private(
    cli: Cli, own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADDS", "Mine.\n")
    done = cli("prompts", "edit", "agent")
    assert (done.code, done.out) == (0, "")
    assert (
        done.err
        == "The prompts are valid. byok is not running; it reads them when it starts.\n"
    )
    assert (own_folder / "agent.md").read_text() == "{{shipped}}\n\nMine.\n"
    for path in (own_folder, own_folder / "agent.md"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


@pytest.mark.usefixtures("editor")
def test_a_new_text_may_begin_with_a_copy(cli: Cli, own_folder: Path) -> None:
    name = "title.small"
    done = cli("prompts", "edit", name, "--whole")
    assert done.code == 0
    assert (own_folder / f"{name}.md").read_text() == shipped_texts()["title"]
    assert "Nothing was changed." in done.err
    assert "code --wait" in done.err


@pytest.mark.usefixtures("editor")
def test_a_running_daemon_uses_it_and_keeps_the_old_one_if_it_is_broken(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with daemon_thread() as daemon:
        monkeypatch.setenv("ADDS", "Mine.\n")
        done = cli("prompts", "edit", "title")
        assert (done.code, done.out) == (0, "")
        assert "The running daemon uses them from now on." in done.err
        first = daemon.services.defaults.prompts
        assert first.render("title").text.endswith("Mine.")
        monkeypatch.setenv("ADDS", "{{oops}}\n")
        done = cli("prompts", "edit", "title")
        assert done.code == 78
        assert done.out.startswith("title.md:4: {{oops}} is no slot.")
        assert "keeps the prompts that it has" in done.err
        assert daemon.services.defaults.prompts is first


@pytest.mark.usefixtures("editor")
@pytest.mark.parametrize("kind", ["folder", "outwards"])
def test_what_is_no_file_of_the_folder_is_not_opened(
    cli: Cli,
    own_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    monkeypatch.setenv("ADDS", "Mine.")
    own_folder.mkdir(parents=True)
    file, outside = own_folder / "title.md", tmp_path / "outside.md"
    outside.write_text("x")
    if kind == "folder":
        file.mkdir()
    else:
        file.symlink_to(outside)
    done = cli("prompts", "edit", "title")
    assert (done.code, done.out) == (1, "")
    assert "is no plain file of that folder" in done.err
    assert outside.read_text() == "x"


@pytest.mark.parametrize("name", ["agents", "../agent"])
def test_only_prompts_can_be_edited(cli: Cli, own_folder: Path, name: str) -> None:
    done = cli("prompts", "edit", name)
    assert (done.code, done.out) == (1, "")
    assert not own_folder.exists()


def script(folder: Path, name: str, text: str) -> Path:
    if os.name != "posix":
        pytest.skip("scripts for POSIX")
    file = folder / name
    file.write_text(f"#!{sys.executable}\nimport os, signal, sys\n{text}\n")
    file.chmod(0o700)
    return file


def test_the_variables_are_read_in_their_order(tmp_path: Path) -> None:
    one, two = script(tmp_path, "one", ""), script(tmp_path, "two ed", "")
    both = {"VISUAL": f"'{two}' --wait -x 'a b'", "EDITOR": str(one)}
    assert find_editor(both) == [str(two), "--wait", "-x", "a b"]
    assert find_editor({"VISUAL": " ", "EDITOR": str(one)}) == [str(one)]


def test_a_name_is_looked_up_in_trusted_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, project = tmp_path / "bin", tmp_path / "project"
    own.mkdir()
    project.mkdir()
    mine = script(own, "ed", "")
    script(project, "evil", "")
    monkeypatch.setenv("PATH", f"{own}{os.pathsep}{project}")
    monkeypatch.chdir(project)
    assert find_editor({"EDITOR": "ed -w"}) == [str(mine), "-w"]
    with pytest.raises(BadRequest, match="evil, which was not found"):
        find_editor({"EDITOR": "evil"})


def test_without_a_terminal_only_a_named_editor_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = script(tmp_path, "vi", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(BadRequest):
        find_editor({})
    assert find_editor({"EDITOR": "vi"}) == [str(usual)]


@pytest.mark.parametrize("value", ["./ed", "'open", "no-such-editor-here"])
def test_an_editor_that_is_not_there_is_told(value: str) -> None:
    assert find_program("no-such-editor-here") is None
    with pytest.raises(BadRequest, match="EDITOR") as raised:
        find_editor({"EDITOR": value})
    assert "VISUAL='code --wait'" in raised.value.hint


def run(tmp_path: Path, text: str, arguments: str = "") -> Path:
    file = tmp_path / "prompts" / "agent $(touch evil) *.md"
    file.parent.mkdir()
    file.write_text("old")
    open_editor(file, {"VISUAL": f"{script(tmp_path, 'ed', text)} {arguments}"})
    return file


def test_no_shell_reads_the_names(tmp_path: Path) -> None:
    write = "open(sys.argv[-1], 'w').write(f'{sys.argv[1:-1]} {os.getcwd()}')"
    file = run(tmp_path, write, "-a ';' '$HOME'")
    assert file.read_text() == f"['-a', ';', '$HOME'] {file.parent}"
    assert [*file.parent.iterdir()] == [file]


def test_an_editor_that_fails_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"failed \(exit code -9\)"):
        run(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)")


def test_an_interrupt_is_left_to_the_editor(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    interrupt = (
        "os.kill(os.getppid(), signal.SIGINT)\n"
        "mine = signal.getsignal(signal.SIGINT)\n"
        "open(sys.argv[1], 'w').write(str(mine is signal.default_int_handler))"
    )
    assert run(tmp_path, interrupt).read_text() == "True"
    assert signal.getsignal(signal.SIGINT) is before
