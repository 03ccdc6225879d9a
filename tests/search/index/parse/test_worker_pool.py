"""The pool: every job once, whatever workers do, and no process left behind."""

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from byok.search.index.parse.prepare import prepare
from byok.search.index.parse.worker import WorkerLimits
from byok.search.index.parse.worker_pool import (
    BATCH_FILES,
    Pool,
    WorkerProcess,
    WorkersUnavailable,
)
from byok.search.index.types import ParseJob, ParseOutcome, SkipReason
from tests.fakes.patience import PATIENCE

pytestmark = pytest.mark.slow  # it starts programs, or works for seconds

ROOT = Path(__file__).parents[4]
LIMIT = 0.15
NASTY = "tests.fakes.nasty_worker"


@contextmanager
def pool(size: int = 1, **options: Any) -> Iterator[Pool]:
    made = Pool(size, **{"limit": 10.0, "nice": 0} | options)
    try:
        yield made
    finally:
        made.close()
        assert made.pids() == []


def named(*paths: str) -> list[ParseJob]:
    return [ParseJob(key, path, content=b"x") for key, path in enumerate(paths)]


def done(workers: Pool, jobs: list[ParseJob]) -> dict[str, ParseOutcome]:
    """Return the outcomes of jobs by their paths; each job has one."""
    paths = {job.key: job.path for job in jobs}
    outcomes = list(workers.prepare(jobs))
    assert sorted(one.key for one in outcomes) == sorted(paths)
    return {paths[one.key]: one for one in outcomes}


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


def test_worker_pool_gives_every_job_the_outcome_of_prepare(tmp_path: Path) -> None:
    jobs = [ParseJob(n, f"{n}.py", content=b"def f(): pass") for n in range(300)]
    (tmp_path / "a.py").write_bytes(b"def g(): pass")
    jobs += [ParseJob(300, "a.py", str(tmp_path)), ParseJob(301, "none", str(tmp_path))]
    with pool(2) as workers:
        outcomes = sorted(workers.prepare(jobs), key=lambda one: one.key)
    assert [one.key for one in outcomes] == [job.key for job in jobs]
    assert all(
        one.prepared == prepare(jobs[one.key].path, b"def f(): pass")
        for one in outcomes[:300]
    )
    assert outcomes[300].prepared == prepare("a.py", b"def g(): pass")
    assert outcomes[300].facts
    assert outcomes[301].reason is SkipReason.NOT_ACCESSIBLE


def test_worker_pool_drops_the_work_of_a_caller_that_stops_early() -> None:
    with pool(target=f"{NASTY}:nasty") as workers:
        jobs = [
            *named(*(f"{n}.txt" for n in range(BATCH_FILES))),
            ParseJob(99, "sleep"),
        ]
        outcomes = workers.prepare(jobs)
        next(outcomes)
        pids = workers.pids()
        outcomes.close()  # type: ignore[attr-defined]
        assert not any(is_alive(pid) for pid in pids)
        assert len(list(workers.prepare(named("a", "b")))) == 2


@pytest.mark.case("B77")
@pytest.mark.case("F21")
@pytest.mark.parametrize("how", ["segv", "memory"])
def test_a_file_that_ends_its_worker_is_done_without_the_parser(how: str) -> None:
    paths = [*map(str, range(20)), f"{how} once", *map(str, range(30, 50))]
    with pool(target=f"{NASTY}:nasty") as workers:
        found = done(workers, named(*paths))
    assert found.keys() == set(paths)
    assert all(one.prepared for one in found.values())
    assert [path for path, one in found.items() if one.plain] == [f"{how} once"]


@pytest.mark.case("B77")
@pytest.mark.case("F21")
def test_a_file_that_ends_every_worker_is_given_up_and_no_other() -> None:
    paths = ["a", "segv 1", "b", "segv 2", "c", "kill 1", "d"]
    with pool(2, target=f"{NASTY}:nasty") as workers:
        found = done(workers, named(*paths))
    lost = {path for path, one in found.items() if one.prepared is None}
    assert lost == {"segv 1", "segv 2", "kill 1"}
    assert {found[path].reason for path in lost} == {SkipReason.NOT_ACCESSIBLE}


@pytest.mark.case("F21")
@pytest.mark.parametrize("how", ["spin once", "sleep once"])
def test_worker_pool_does_a_file_that_hangs_without_the_parser(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pool(limit=LIMIT, silence=2.0, target=f"{NASTY}:nasty") as workers:
        found = done(workers, named("a", how, "b"))
    assert found[how].plain
    assert all(one.prepared for one in found.values())
    # Who computes without end is at fault at once, who waits may wait for others.
    lost = [r for r in caplog.records if "was lost" in r.getMessage()]
    assert len(lost) == (1 if "spin" in how else 3)


@pytest.mark.skipif(
    sys.platform != "linux", reason="only there it is seen from outside"
)
@pytest.mark.case("F21")
def test_worker_pool_ends_a_process_whose_timer_does_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pool(limit=0.1, target=f"{NASTY}:timeless") as workers:
        [outcome] = workers.prepare(named("spin once"))
    assert outcome.plain
    assert outcome.prepared


@pytest.mark.case("F21")
@pytest.mark.parametrize("how", ["killed", "no room"])
def test_worker_pool_tries_a_file_again_whose_process_others_ended(
    how: str, tmp_path: Path
) -> None:
    """The system ends processes when memory is short, and people do."""
    path = f"{how} twice {tmp_path / 'marker'}"
    with pool(target=f"{NASTY}:nasty") as workers:
        found = done(workers, named("a", path, "b"))
    assert (tmp_path / "marker").read_text() == "xxx"
    assert not any(one.plain for one in found.values())
    assert all(one.prepared for one in found.values())


@pytest.mark.case("F21")
def test_what_a_worker_prints_before_it_dies_is_in_the_log(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with pool(target=f"{NASTY}:nasty") as workers:
        [outcome] = workers.prepare(named("print once"))
    assert outcome.plain
    assert "grammar: cannot go on" in caplog.text
    assert "\x1b" not in caplog.text
    assert capfd.readouterr() == ("", "")


@pytest.mark.case("F21")
@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("bytes", "unreadable reply: UnpicklingError"),
        ("frame", "it ended"),
    ],
)
def test_a_worker_that_babbles_is_not_believed_and_logged(
    path: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pool(target=f"{NASTY}:babbling") as workers:
        [outcome] = workers.prepare(named(path))
    assert (outcome.prepared, outcome.reason) == (None, SkipReason.NOT_ACCESSIBLE)
    lost = [r.getMessage() for r in caplog.records if "was lost" in r.getMessage()]
    assert len(lost) >= 2  # with the parser and without
    assert all(why in line for line in lost)


BOMBS = {
    "a.sh": b"<<A\n" * 50_000,
    "a.js": b"(a[{" * 5 + b"\n" + b"x=(\n" * 30_000,
    "a.py": b"f(\n" * 30_000,
}


@pytest.mark.case("B76")
def test_worker_pool_chunks_a_text_too_hard_for_the_parser_without_it() -> None:
    jobs = [ParseJob(n, path, content=BOMBS[path]) for n, path in enumerate(BOMBS)]
    with pool(2, limit=2 * LIMIT) as workers:
        found = done(workers, jobs)
    assert found.keys() == BOMBS.keys()
    assert found["a.sh"].plain
    assert found["a.sh"].prepared == prepare("a.sh", BOMBS["a.sh"], plain=True)
    assert all(one.prepared for one in found.values())


@pytest.mark.case("F22")
def test_workers_that_cannot_be_started_are_told() -> None:
    attempts = []

    def start(target: str, limits: WorkerLimits) -> WorkerProcess:
        attempts.append(target)
        raise BlockingIOError(errno.EAGAIN, "no more processes")

    with pool(2, start=start) as workers:
        for _ in range(2):
            attempts.clear()
            with pytest.raises(WorkersUnavailable):
                list(workers.prepare(named("a")))
            assert len(attempts) == 3


@pytest.mark.case("F22")
def test_the_workers_that_did_start_do_it_all() -> None:
    started: list[WorkerProcess] = []

    def start(target: str, limits: WorkerLimits) -> WorkerProcess:
        if started:
            raise BlockingIOError(errno.EAGAIN, "no more processes")
        started.append(WorkerProcess(target, limits))
        return started[0]

    with pool(3, start=start) as workers:
        jobs = [ParseJob(n, "a.txt", content=b"x") for n in range(5 * BATCH_FILES)]
        assert len(list(workers.prepare(jobs))) == len(jobs)


ORPHANS = """
import sys
from byok.search.index.types import ParseJob
from byok.search.index.parse.worker_pool import Pool
if __name__ == "__main__":
    pool = Pool(2, limit=60, target="tests.fakes.nasty_worker:patient")
    jobs = [ParseJob(n, "a", content=b"x") for n in range(64)]
    list(pool.prepare(jobs))
    outcomes = pool.prepare([*jobs, ParseJob(99, sys.argv[1], content=b"x")] + jobs)
    next(outcomes)
    print(*pool.pids(), flush=True)
    next(x for x in outcomes if x.key == 99)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.case("F21")
@pytest.mark.parametrize("path", ["sleep", "spin"])
def test_no_worker_outlives_a_killed_daemon(path: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(ORPHANS)
    daemon = subprocess.Popen(
        [sys.executable, str(script), path],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    with daemon:
        assert daemon.stdout
        pids = [int(pid) for pid in daemon.stdout.readline().split()]
        daemon.kill()
    assert pids
    wait_until(lambda: not any(is_alive(pid) for pid in pids))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_worker_loads_the_parser_and_little_else() -> None:
    with pool() as workers:
        list(workers.prepare(named("a.py", "b.ts", "c.rs", "d.java", "e.cpp")))
        [pid] = workers.pids()
        maps = Path(f"/proc/{pid}/maps").read_text()
        status = Path(f"/proc/{pid}/status").read_text()
        limits = Path(f"/proc/{pid}/limits").read_text()
    assert "tree_sitter" in maps
    assert not any(name in maps for name in ("tantivy", "pydantic", "sqlite", "_http"))
    [peak] = [line for line in status.splitlines() if line.startswith("VmHWM")]
    assert int(peak.split()[1]) < 130 * 1024
    [space] = [line for line in limits.splitlines() if "address space" in line]
    assert str(2**30) in space
