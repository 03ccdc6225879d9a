"""The user's editor: which one, how it is started, and how it ended."""

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from byok.cli.prompts import find_editor, open_editor
from byok.core.errors import BadRequest
from byok.core.platform.programs import find_program

pytestmark = pytest.mark.skipif(os.name != "posix", reason="scripts for POSIX")


def script(folder: Path, name: str, text: str) -> Path:
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


def test_without_a_variable_a_common_editor_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadRequest, match="No editor was found") as raised:
        find_editor({})
    assert "VISUAL" in raised.value.hint
    vi = script(tmp_path, "vi", "")
    assert find_editor({}) == [str(vi)]


@pytest.mark.parametrize(
    "value", ["./ed", "bin/ed", "/no/such/editor", "'open", "no-such-editor-here"]
)
def test_an_editor_that_is_not_there_is_told(value: str) -> None:
    assert find_program("no-such-editor-here") is None
    with pytest.raises(BadRequest, match="EDITOR") as raised:
        find_editor({"EDITOR": value})
    assert "VISUAL='code --wait'" in raised.value.hint


def run(tmp_path: Path, text: str, arguments: str = "") -> Path:
    file = tmp_path / "prompts" / "agent $(touch evil) *.md"
    file.parent.mkdir()
    file.write_text("old")
    environ: Mapping[str, str] = {
        "VISUAL": f"{script(tmp_path, 'ed', text)} {arguments}"
    }
    open_editor(file, environ)
    return file


def test_no_shell_reads_the_names(tmp_path: Path) -> None:
    write = "open(sys.argv[-1], 'w').write(f'{sys.argv[1:-1]} {os.getcwd()}')"
    file = run(tmp_path, write, "-a ';' '$HOME'")
    assert file.read_text() == f"['-a', ';', '$HOME'] {file.parent}"
    assert [*file.parent.iterdir()] == [file]


@pytest.mark.parametrize(
    ("text", "code"),
    [("sys.exit(3)", "3"), ("os.kill(os.getpid(), signal.SIGKILL)", "-9")],
)
def test_an_editor_that_fails_is_told(tmp_path: Path, text: str, code: str) -> None:
    with pytest.raises(BadRequest, match=rf"failed \(exit code {code}\)"):
        run(tmp_path, text)


def test_an_editor_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    bad = tmp_path / "ed"
    bad.write_text("no program\n")
    bad.chmod(0o700)
    bad.write_bytes(b"\x7fELF")
    with pytest.raises(BadRequest, match="cannot be started: Exec format error"):
        open_editor(tmp_path / "x.md", {"EDITOR": str(bad)})


def test_an_interrupt_is_left_to_the_editor(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    interrupt = (
        "os.kill(os.getppid(), signal.SIGINT)\n"
        "mine = signal.getsignal(signal.SIGINT)\n"
        "open(sys.argv[1], 'w').write(str(mine is signal.default_int_handler))"
    )
    assert run(tmp_path, interrupt).read_text() == "True"
    assert signal.getsignal(signal.SIGINT) is before
