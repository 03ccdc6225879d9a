"""Programs run to their end without a shell, and end at their limits."""

import sys
import time
from pathlib import Path

import pytest

from byok.core.platform.programs import EndedProgram, clean_environment, run_program
from tests.fakes.patience import PATIENCE

_BOTH = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"


def ran(code: str, *arguments: str, seconds: float = PATIENCE) -> EndedProgram:
    command = [sys.executable, "-c", code, *arguments]
    return run_program(command, clean_environment(), seconds=seconds, max_bytes=1000)


def test_a_program_tells_its_code_and_both_outputs() -> None:
    ended = ran(_BOTH)
    printed = (ended.out.split(), ended.err.split())
    assert (ended.exit_code, *printed) == (3, [b"out"], [b"err"])
    assert (ended.was_late, ended.was_cut) == (False, False)
    assert "out" not in repr(ended)


def test_a_program_gets_its_arguments_and_nothing_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    code = "import os, sys; print(sys.argv[1:], 'OPENAI_API_KEY' in os.environ)"
    assert ran(code, "$(touch x)", "; exit 1").out.split(b"\n")[0] == (
        b"['$(touch x)', '; exit 1'] False"
    )


def test_a_program_reads_what_it_is_given_and_else_nothing() -> None:
    command = [sys.executable, "-c", "print(len(input()))"]
    environment = clean_environment()
    ended = run_program(command, environment, seconds=PATIENCE, stdin_bytes=b"three\n")
    assert ended.out.split() == [b"5"]
    assert ran("import sys; print(repr(sys.stdin.read()))").out.split() == [b"''"]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up")
def test_a_program_ends_with_its_children() -> None:
    code = (
        "import subprocess, sys\n"
        "wait = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "print(subprocess.Popen(wait).pid, flush=True)\n"
        "while True: print('x' * 99)"
    )
    ended = ran(code)
    assert ended.was_cut
    assert is_gone(int(ended.out.split()[0]))


def is_gone(pid: int) -> bool:
    """Wait until a process is no more, or only waits for its parent to notice."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


@pytest.mark.slow
def test_a_program_that_hangs_is_ended() -> None:
    ended = ran("import time; time.sleep(600)", seconds=0.5)
    assert (ended.was_late, ended.was_cut) == (True, False)


def test_endless_output_is_cut_and_endless_errors_are_not_kept() -> None:
    ended = ran("while True: print('x' * 99)")
    assert (ended.was_cut, ended.was_late, len(ended.out)) == (True, False, 1000)
    ended = ran("import sys; sys.stderr.write('x' * 1_000_000); print('done')")
    assert (ended.exit_code, ended.out.split()) == (0, [b"done"])
    assert 0 < len(ended.err) <= 2**16


def test_a_program_that_is_not_there_is_the_systems_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run_program([str(tmp_path / "none")], clean_environment(), seconds=1.0)
