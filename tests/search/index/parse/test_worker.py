"""What one worker answers: in a thread of this process, over a real pipe."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from msgspec.structs import replace

from byok.search.index.parse.prepare import prepare
from byok.search.index.parse.worker import (
    BEAT,
    READY,
    Beat,
    Prepare,
    WorkerLimits,
    work,
)
from byok.search.index.parse.worker_pool import (
    UnreadableReply,
    WorkerProcess,
    read_message,
    read_outcomes,
)
from byok.search.index.types import (
    MAX_BYTES,
    FileFacts,
    ParseJob,
    ParseOutcome,
    SkipReason,
    blob_name,
)
from tests.fakes import nasty_worker
from tests.fakes.patience import PATIENCE

NO_TIMER = WorkerLimits(process=0)  # it would end this process


@contextmanager
def working(
    how: Prepare = prepare, limits: WorkerLimits = NO_TIMER
) -> Iterator[tuple[Connection, Connection]]:
    (ours, theirs), (beat, beats) = Pipe(), Pipe(duplex=False)
    thread = Thread(target=work, args=(theirs, beats, limits, how))
    thread.start()
    try:
        assert ours.recv() == READY
        yield ours, beat
    finally:
        ours.close()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_worker_answers_a_batch_in_order_with_a_heartbeat_per_file() -> None:
    jobs = [ParseJob(key, f"{key}.py", content=b"def f(): pass") for key in range(3)]
    with working() as (pipe, beat):
        pipe.send(jobs)
        replies = pipe.recv()
        beats = [Beat(*BEAT.unpack(beat.recv_bytes())) for _ in jobs]
        assert not beat.poll()
    assert [one.number for one in beats] == [0, 1, 2]
    assert 0 < beats[0].computed <= beats[2].computed
    assert [reply.key for reply in replies] == [0, 1, 2]
    assert [reply.prepared for reply in replies] == [
        prepare(job.path, b"def f(): pass") for job in jobs
    ]
    assert {reply.facts for reply in replies} == {None}


def test_worker_reads_files_below_their_root(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x = 1\n")
    (tmp_path / "large.py").write_bytes(b"x" * (MAX_BYTES + 1))
    (tmp_path / "link.py").symlink_to("a.py")
    names = ["a.py", "large.py", "link.py", "none.py", "../a.py"]
    with working() as (pipe, _):
        pipe.send([ParseJob(n, path, str(tmp_path)) for n, path in enumerate(names)])
        read, *others = pipe.recv()
        pipe.send([ParseJob(9, "a.py", str(tmp_path / "none"))])
        [homeless] = pipe.recv()
    assert read.prepared == prepare("a.py", b"x = 1\n")
    assert read.facts.size == 6
    assert read.facts.mtime_ns == (tmp_path / "a.py").stat().st_mtime_ns
    assert [(one.prepared, one.reason) for one in (*others, homeless)] == [
        (None, SkipReason.TOO_LARGE),
        (None, SkipReason.LINK),
        (None, SkipReason.NOT_ACCESSIBLE),
        (None, SkipReason.NOT_ACCESSIBLE),
        (None, SkipReason.NOT_ACCESSIBLE),
    ]


def test_worker_prepares_a_file_that_raises_without_the_parser() -> None:
    with working(nasty_worker.prepare) as (pipe, _):
        pipe.send(
            [ParseJob(1, "raise once", content=b""), ParseJob(2, "raise", content=b"")]
        )
        once, always = pipe.recv()
    assert (once.plain, once.reason, once.prepared is None) == (True, None, False)
    assert (always.plain, always.prepared) == (True, None)
    assert always.reason is SkipReason.NOT_ACCESSIBLE


@pytest.mark.case("B76")
def test_worker_cancels_a_parser_that_computes_too_long_and_goes_on() -> None:
    hard = b"<<A\n" * 5_000  # here-documents without end: seconds of work
    limits = replace(NO_TIMER, parser=0.05)
    jobs = [
        ParseJob(1, "a.sh", content=hard),
        ParseJob(2, "b.sh", content=b"f() { :; }"),
    ]
    with working(limits=limits) as (pipe, _):
        pipe.send(jobs)
        cancelled, next_one = pipe.recv()
    assert cancelled.plain
    assert cancelled.prepared == prepare("a.sh", hard, plain=True)
    assert not next_one.plain
    assert next_one.prepared == prepare("b.sh", b"f() { :; }")


def test_worker_skips_a_file_of_the_known_version(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x = 1\n")
    job = ParseJob(1, "a.py", root=str(tmp_path), known=blob_name("a.py", b"x = 1\n"))
    with working() as (pipe, _):
        pipe.send([job])
        [same] = pipe.recv()
        (tmp_path / "a.py").write_bytes(b"x = 2\n")
        pipe.send([job])
        [changed] = pipe.recv()
    assert (same.prepared, same.reason) == (None, None)
    assert same.facts is not None
    assert changed.prepared is not None


def test_worker_does_not_parse_a_version_that_killed_a_parser(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x = 1\n")
    parser_crashers = frozenset([blob_name("a.py", b"x = 1\n")])
    job = ParseJob(1, "a.py", root=str(tmp_path), parser_crashers=parser_crashers)
    with working() as (pipe, _):
        pipe.send([job])
        [same] = pipe.recv()
        (tmp_path / "a.py").write_bytes(b"x = 2\n")
        pipe.send([job])
        [mended] = pipe.recv()
    assert (same.plain, mended.plain) == (True, False)
    assert same.prepared is not None


# Replies of workers: what is read, and what is refused


JOBS = [ParseJob(1, "a.py"), ParseJob(2, "b.py")]
PREPARED = prepare("a.py", b"def lion(): pass\n")
REPLY = ParseOutcome(1, PREPARED, None, FileFacts(1, 2, 3, 4), False, 0.1, 0.2)
SKIPPED = ParseOutcome(2, None, SkipReason.BINARY)


@pytest.mark.parametrize(
    "message",
    [
        [],
        {},
        "ready",
        None,
        ["no reply"],
        [SKIPPED],
        [REPLY, SKIPPED, SKIPPED],
        [replace(REPLY, prepared="no file")],
    ],
)
def test_worker_reply_that_does_not_answer_the_batch_is_refused(
    message: object,
) -> None:
    with pytest.raises(UnreadableReply):
        read_outcomes(message, JOBS)


class _Call:
    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self._marker),)


@pytest.mark.case("B112")
def test_worker_reply_with_other_classes_or_damage_is_refused(tmp_path: Path) -> None:
    marker = tmp_path / "was-here"
    whole = pickle.dumps([REPLY])
    for received in (pickle.dumps(_Call(marker)), whole[:-9], b"", b"\x80\x04junk"):
        with pytest.raises(UnreadableReply):
            read_message(received)
    assert not marker.exists()


# How a worker starts: alone with its pipes, far from the current folder


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
