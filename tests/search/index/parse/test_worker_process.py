"""How a worker starts: alone with its pipes, far from the current folder."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from byok.search.index.parse.worker import WorkerLimits
from byok.search.index.parse.worker_pool import WorkerProcess

LIMITS = WorkerLimits(nice=0)
FILES = Path("/proc/self/fd")
ISOLATED = "import sys; print(*sys.path, sep='\\n')"


@contextmanager
def started(
    name: str = "telling", limits: WorkerLimits = LIMITS
) -> Iterator[WorkerProcess]:
    process = WorkerProcess(f"tests.fakes.nasty_worker:{name}", limits)
    try:
        yield process
    finally:
        process.end()


def told(process: WorkerProcess) -> Any:
    assert process.connection.poll(30)
    return process.connection.recv()


@pytest.mark.case("B109")
def test_worker_process_searches_modules_like_python_and_then_in_byok(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), "relative", *sys.path])
    with started() as process:
        where, path, *_ = told(process)
    alone = subprocess.run(
        [sys.executable, "-I", "-c", ISOLATED],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert path[: len(alone)] == alone
    assert where == Path(tmp_path.anchor)
    assert all(Path(entry).is_absolute() for entry in path)
    assert str(tmp_path) not in path


@pytest.mark.case("B112")
def test_worker_process_has_no_key_in_its_environment_and_is_not_dumpable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    monkeypatch.setenv("LC_CTYPE", "C.UTF-8")
    with started() as process:
        *_, environ, is_dumpable = told(process)
    assert not set(environ) - {"PATH", "SYSTEMROOT", "LANG", "LC_ALL", "LC_CTYPE"}
    assert environ["LC_CTYPE"] == "C.UTF-8"
    assert not is_dumpable


@pytest.mark.skipif(not FILES.is_dir(), reason="needs /proc")
def test_worker_process_that_cannot_start_leaves_no_pipe_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    before = len(list(FILES.iterdir()))
    with pytest.raises(OSError, match="/nowhere/python"), started():
        pass
    assert len(list(FILES.iterdir())) == before
