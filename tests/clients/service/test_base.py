"""What a service runs, its mark and templates, and programs of the system."""

import os
import sys
from pathlib import Path

import pytest

from byok.clients.service.base import Command, fill, find_mark, run
from byok.core.errors import CannotStart, ConfigError
from tests.fakes.launches import make_launch


def test_command_is_this_interpreter_and_imports_nothing_of_the_folder() -> None:
    assert make_launch().command("serve") == [
        *("/opt/plain/python", "-P", "-m", "byok", "serve"),
        *("--config", "/opt/plain/config.toml"),
    ]


@pytest.mark.parametrize("name", ["a\nExecStart=x", "\udcff"])
def test_path_that_no_file_can_hold_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="no service can be given"):
        make_launch(name)


@pytest.mark.parametrize("content", ["Written by byok service install", "byok (0123)"])
def test_file_of_somebody_else_has_no_mark(content: str) -> None:
    assert find_mark(content) == ""


def test_value_with_a_place_of_its_own_stays_as_it_is() -> None:
    filled = fill("byok.socket", {"mark": "{listen}", "listen": "{mark}"})
    assert "# {listen}\n" in filled
    assert "[Socket]\n{mark}\nBind" in filled


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program called systemctl, found before any other."""
    if os.name != "posix":
        pytest.skip("scripts with a first line")
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder / "systemctl"


def write(program: Path, code: str) -> None:
    program.write_text(f"#!{sys.executable}\n{code}\n")
    program.chmod(0o755)


def test_keys_do_not_reach_the_program(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    write(program, "import os; print(sorted(os.environ))")
    said = run(Command(("systemctl",))).out
    assert "PATH" in said
    assert "OPENAI_API_KEY" not in said


def test_failure_is_an_error_unless_it_may_be(program: Path) -> None:
    write(program, "import sys; sys.exit('Unit byok.service not found.')")
    with pytest.raises(CannotStart, match=r"`systemctl x` failed \(1\): Unit byok"):
        run(Command(("systemctl", "x")))
    assert run(Command(("systemctl", "x"), may_fail=True)).exit_code == 1


@pytest.mark.slow
def test_program_that_hangs_is_ended(program: Path) -> None:
    write(program, "import time; time.sleep(600)")
    with pytest.raises(CannotStart, match="did not end within"):
        run(Command(("systemctl",), seconds=0.5, may_fail=True))


@pytest.mark.slow
def test_command_is_tried_again(program: Path) -> None:
    counter = program.with_name("count")
    write(
        program,
        f"import sys; f = open({str(counter)!r}, 'a'); f.write('x'); "
        f"f.close(); sys.exit(len(open({str(counter)!r}).read()) < 2)",
    )
    assert run(Command(("systemctl",), tries=3)).exit_code == 0
    assert counter.read_text() == "xx"
