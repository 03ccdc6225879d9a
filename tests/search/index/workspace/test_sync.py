"""Keeping a workspace and the index the same, with workers in the same process."""

import asyncio
import errno
import os
import shutil
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from byok.search.index.files.ignore import Rules
from byok.search.index.indexer import Indexer
from byok.search.index.store.store import Store
from byok.search.index.types import Phase
from byok.search.index.workspace.sync import Synchroniser
from byok.search.index.workspace.workspace import Workspace
from tests.fakes.engines import InlineWorkers, engine, project, until, written
from tests.fakes.patience import PATIENCE
from tests.fakes.repository import Repository
from tests.fakes.watching import PlayedWatches


class Bench:
    """A synchroniser, and what it works with."""

    def __init__(self, root: Path, folder: Path, **options: Any) -> None:
        self.workers = InlineWorkers()
        self.loop = asyncio.get_running_loop()
        self.store = Store(folder / "data.db", folder / "index")
        self.store.on_written = self._written
        self.indexer = Indexer(
            lambda size: self.workers,
            self.store,
            on_flush=lambda: self._soon(self._searchable),
        )
        rules = Rules(lambda path: _content(root / path))
        self.workspace = Workspace(1, root, rules)
        self.store.change(
            lambda db: db.execute(
                "INSERT INTO workspace(id, root) VALUES(1, ?)", (str(root),)
            )
        ).result()
        self.sync = Synchroniser(
            self.workspace,
            self.store,
            self.indexer,
            **{"max_files": 100, "settle_seconds": 0.05, **options},
        )

    def _soon(self, work: Any, *values: Any) -> None:
        self.loop.call_soon_threadsafe(work, *values)

    def _written(self, written: Any) -> None:
        self.workspace.set_member(written.path, written.blob_id)
        self._soon(self._done, written.path)

    def _done(self, path: str) -> None:
        self.sync.note_written(path, settled=True)

    def _searchable(self) -> None:
        self.sync.searchable()

    @property
    def paths(self) -> list[str]:
        return sorted(self.workspace.paths())

    async def idle(self) -> None:
        await until(
            lambda: (
                not self.indexer.open_tasks
                and self.workspace.status.phase is Phase.COMPLETE
            )
        )

    async def close(self) -> None:
        self.sync.close()
        self.workers.gate.set()
        await asyncio.to_thread(self.indexer.close)
        await asyncio.to_thread(self.store.close)


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(tmp_path / "p", a__py="one", src___b__py="two")


@asynccontextmanager
async def opened(root: Path, **options: Any) -> AsyncIterator[Bench]:
    bench = Bench(root, root.parent / "data", **options)
    try:
        yield bench
    finally:
        await bench.close()


@pytest.fixture
async def bench(root: Path) -> AsyncIterator[Bench]:
    async with opened(root) as made:
        yield made


@asynccontextmanager
async def running(bench: Bench) -> AsyncIterator[None]:
    run = asyncio.ensure_future(bench.sync.run())
    try:
        yield
    finally:
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)


def phases(log: pytest.LogCaptureFixture) -> list[str]:
    """Return the phases that the log tells of, in order."""
    told = [
        r.getMessage()
        for r in log.records
        if r.name == "byok.search.index.workspace.workspace"
    ]
    return [text.rpartition(" ")[2] for text in told]


async def test_sync_indexes_what_is_there(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await bench.sync.scan()
    await bench.idle()
    assert bench.paths == ["a.py", "src/b.py"]
    assert phases(caplog) == ["scanning", "indexing", "complete"]
    assert bench.workspace.file_count == 2


async def test_sync_progress_stays_between_0_and_100_and_ends_at_100(
    bench: Bench,
) -> None:
    written(bench.workspace.root, {f"f{n}.py": f"{n}" for n in range(90)})
    await bench.sync.scan()
    shares = []
    while bench.workspace.status.phase is not Phase.COMPLETE:
        shares.append(bench.workspace.progress.percentage)
        await asyncio.sleep(0)
    assert all(0 <= share <= 100 for share in shares)
    assert shares == sorted(shares)
    assert bench.workspace.progress.percentage == 100
    assert bench.workspace.progress.files_processed == 92


async def test_sync_again_reads_nothing(bench: Bench) -> None:
    await bench.sync.scan()
    await bench.idle()
    before = list(bench.workers.prepared)
    await bench.sync.scan()
    await bench.idle()
    assert bench.workers.prepared == before
    assert bench.workspace.counters.mtime_hits == 2


async def test_sync_of_an_empty_folder_is_complete(tmp_path: Path) -> None:
    async with opened(project(tmp_path / "p")) as bench:
        await bench.sync.scan()
        assert bench.workspace.status.phase is Phase.COMPLETE
        assert bench.workspace.progress.percentage == 100


async def test_sync_tells_changed_new_and_deleted_files_apart(bench: Bench) -> None:
    root = bench.workspace.root
    await bench.sync.scan()
    await bench.idle()
    before = bench.workspace.blob_of("a.py")
    (root / "a.py").write_text("three")
    (root / "c.py").write_text("four")
    (root / "src" / "b.py").unlink()
    await bench.sync.refresh(["a.py", "c.py", "src/b.py", "never/there"])
    await bench.idle()
    assert bench.paths == ["a.py", "c.py"]
    assert bench.workspace.blob_of("a.py") != before


async def test_sync_of_a_touched_file_keeps_its_blob(bench: Bench) -> None:
    await bench.sync.scan()
    await bench.idle()
    before = bench.workspace.blob_of("a.py")
    os.utime(bench.workspace.root / "a.py", (1, 1))
    await bench.sync.refresh(["a.py"])
    await bench.idle()
    assert bench.workspace.blob_of("a.py") == before


async def test_sync_of_a_renamed_folder_moves_what_is_below(bench: Bench) -> None:
    await bench.sync.scan()
    await bench.idle()
    root = bench.workspace.root
    (root / "src").rename(root / "lib")
    await bench.sync.refresh(["src", "lib"])
    await bench.idle()
    assert bench.paths == ["a.py", "lib/b.py"]


async def test_sync_of_a_deleted_folder_removes_its_files(bench: Bench) -> None:
    await bench.sync.scan()
    await bench.idle()
    shutil.rmtree(bench.workspace.root / "src")
    await bench.sync.refresh(["src"])
    await bench.idle()
    assert bench.paths == ["a.py"]


async def test_sync_does_not_refresh_an_ignored_file(bench: Bench) -> None:
    root = bench.workspace.root
    written(root, {".gitignore": "*.log\nout/\n", "a.log": "x", "out/b.py": "x"})
    await bench.sync.refresh(["a.log", "out", "out/b.py"])
    await bench.idle()
    assert bench.paths == []


async def test_sync_leaves_too_many_files_to_ripgrep(root: Path) -> None:
    async with opened(root, max_files=1) as bench:
        await bench.sync.scan()
        assert bench.workspace.status.phase is Phase.TOO_LARGE
        assert (
            bench.workspace.status.note == "more than 1 files: ripgrep answers instead"
        )
        assert not bench.workspace.status.was_complete
        written(root, {".gitignore": "src/\n.gitignore\n"})
        bench.workspace.rules.forget("")
        await bench.sync.scan()
        await bench.idle()
        assert (bench.paths, bench.workspace.status.note) == (["a.py"], "")


async def test_sync_of_a_folder_that_vanishes_keeps_what_is_known_and_says_so(
    bench: Bench,
) -> None:
    root = bench.workspace.root
    await bench.sync.scan()
    await bench.idle()
    root.rename(root.with_name("away"))
    await bench.sync.scan()
    assert bench.workspace.status.phase is Phase.GONE
    root.with_name("away").rename(root)
    await bench.sync.scan()
    await bench.idle()
    assert (bench.workspace.status.note, bench.paths) == ("", ["a.py", "src/b.py"])


@pytest.mark.case("F23")
async def test_sync_drops_waiting_files_that_a_new_rule_ignores(
    bench: Bench,
) -> None:
    root = bench.workspace.root
    written(root, {f"out/{n}.py": "x" for n in range(20)})
    bench.workers.gate.clear()
    await bench.sync.scan()
    await until(lambda: bench.indexer.open_of(1) == 22)
    written(root, {".gitignore": "out/\n"})
    bench.workspace.rules.forget("")
    await bench.sync.scan()
    assert bench.indexer.open_of(1) <= 4
    bench.workers.gate.set()
    await bench.idle()
    await until(lambda: bench.paths == [".gitignore", "a.py", "src/b.py"])


async def test_sync_in_the_middle_of_indexing_queues_nothing_twice(
    bench: Bench,
) -> None:
    bench.workers.gate.clear()
    await bench.sync.scan()
    for _ in range(3):
        await bench.sync.scan()
    assert bench.indexer.open_of(1) <= 3
    bench.workers.gate.set()
    await bench.idle()
    assert bench.paths == ["a.py", "src/b.py"]
    assert bench.workspace.progress.percentage == 100


async def test_sync_with_dropped_tasks_ends_complete(bench: Bench) -> None:
    bench.workers.gate.clear()
    await bench.sync.scan()
    bench.indexer.drop(1)
    bench.workers.gate.set()
    await bench.sync.scan()
    await bench.idle()
    assert bench.workspace.progress.percentage == 100


async def test_sync_recovers_after_a_failed_indexer(root: Path) -> None:
    async with opened(root) as bench:
        bench.workers.failures = 1
        await bench.sync.scan()
        await bench.idle()
        assert bench.paths == ["a.py", "src/b.py"]


async def test_sync_looks_again_at_what_is_not_settled(bench: Bench) -> None:
    await bench.sync.scan()
    await bench.idle()
    before = bench.workers.prepared.count("a.py")
    bench.sync.note_written("a.py", settled=False)
    await until(lambda: bench.workers.prepared.count("a.py") == before + 1)


async def test_sync_drops_a_file_deleted_while_a_worker_has_it(
    bench: Bench,
) -> None:
    root = bench.workspace.root
    read = threading.Event()

    class Slow(InlineWorkers):
        def prepare(self, jobs: Any) -> Iterator[Any]:
            for outcome in super().prepare(jobs):
                read.set()
                hold.wait(PATIENCE)
                yield outcome

    hold = threading.Event()
    bench.workers = Slow()
    await bench.sync.scan()
    await until(read.is_set)
    (root / "a.py").unlink()
    await bench.sync.refresh(["a.py"])
    hold.set()
    await until(lambda: bench.paths == ["src/b.py"])


async def test_sync_follows_events_and_scans_once_after_a_flood(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    events = PlayedWatches()
    async with opened(root, watches=events) as bench:
        run = asyncio.ensure_future(bench.sync.run())
        await bench.idle()
        (root / "a.py").write_text("other")
        before = bench.workspace.blob_of("a.py")
        events.told("a.py")
        await until(lambda: bench.workspace.blob_of("a.py") != before)
        await bench.idle()
        scans = phases(caplog).count(Phase.SCANNING)
        (root / "c.py").write_text("new")
        events.told(*(f"none/{n}" for n in range(501)))
        await until(lambda: "c.py" in bench.paths)
        after = phases(caplog).count(Phase.SCANNING)
        assert after == scans + 1
        written(root, {".gitignore": "c.py\n"})
        events.told(".gitignore")
        await until(lambda: bench.paths == [".gitignore", "a.py", "src/b.py"])
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)


@pytest.mark.parametrize(
    ("path", "gone", "left"),
    [("src", "src/b.py", "a.py"), ("a.py", "a.py", "src/b.py")],
)
async def test_sync_reports_and_repeats_a_second_look_that_fails(
    bench: Bench, root: Path, path: str, gone: str, left: str
) -> None:
    await bench.sync.scan()
    await bench.idle()
    hold = sqlite3.connect(bench.store.database.path)
    bench.store.database.connection.execute("PRAGMA busy_timeout = 10")
    hold.execute("BEGIN IMMEDIATE")
    (root / gone).unlink()
    bench.sync._look_again([path])
    await until(lambda: "not be synchronised" in bench.workspace.status.note)
    hold.close()
    await until(lambda: bench.paths == [left] and not bench.workspace.status.note)
    await bench.idle()


async def test_sync_notes_a_change_later_if_it_cannot_be_noted(root: Path) -> None:
    events = PlayedWatches()
    async with opened(root, watches=events) as bench, running(bench):
        await bench.idle()
        hold = sqlite3.connect(bench.store.database.path)
        bench.store.database.connection.execute("PRAGMA busy_timeout = 10")
        hold.execute("BEGIN IMMEDIATE")
        (root / "a.py").unlink()
        events.told("a.py")
        await until(lambda: "not be synchronised" in bench.workspace.status.note)
        hold.close()
        await until(
            lambda: bench.paths == ["src/b.py"] and not bench.workspace.status.note
        )
        (root / "src" / "b.py").unlink()
        events.told("src/b.py")
        await until(lambda: bench.paths == [])
        assert events.made == 1


async def test_sync_ignores_events_from_behind_a_symlink(
    bench: Bench, root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    written(tmp_path / "out", {"sub/x.py": "outside"})
    (root / "link").symlink_to(tmp_path / "out")
    await bench.sync.scan()
    await bench.idle()
    caplog.set_level("INFO")
    caplog.clear()
    await bench.sync.refresh(["link", "link/sub", "link/sub/x.py"])
    assert Phase.SCANNING not in phases(caplog)
    assert bench.store.database.rows("SELECT path FROM file WHERE path > 'l'") == [
        ("src/b.py",)
    ]


@pytest.mark.case("F33")
async def test_sync_without_events_polls_and_says_so(root: Path) -> None:
    events = PlayedWatches()
    events.error = OSError(errno.ENOSPC, "no more watches")
    async with opened(root, watches=events, poll_seconds=0.02) as bench:
        run = asyncio.ensure_future(bench.sync.run())
        await until(
            lambda: bench.workspace.status.note == "changes are looked for every 0 s"
        )
        (root / "a.py").unlink()
        await until(lambda: bench.paths == ["src/b.py"])
        (root / "new.py").write_text("new")
        await until(lambda: "new.py" in bench.paths)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)


async def test_sync_close_cancels_a_scan(tmp_path: Path, root: Path) -> None:
    async with engine(tmp_path / "e", root) as made:
        [space] = made.workspaces
    assert space._stopped


async def test_sync_too_large_ends_when_files_are_gone(root: Path) -> None:
    async with opened(root, max_files=1) as bench, running(bench):
        await until(lambda: bench.workspace.status.phase is Phase.TOO_LARGE)
        (root / "a.py").unlink()
        await bench.idle()
        assert (bench.paths, bench.workspace.status.note) == (["src/b.py"], "")
        written(root, {"c.py": "new"})
        await until(lambda: bench.workspace.status.phase is Phase.TOO_LARGE)


async def test_sync_counts_files_that_come_and_go_at_once(bench: Bench) -> None:
    root = bench.workspace.root
    await bench.sync.scan()
    await bench.idle()
    (root / "a.py").unlink()
    (root / "src" / "b.py").write_text("edited")
    await bench.sync.refresh(["a.py", "src/b.py"])
    await bench.idle()
    assert bench.workspace.progress.files_tracked == 1
    written(root, {"lib/c.py": "new", "lib/d.bin": "\0"})
    await bench.sync.refresh(["lib"])
    await bench.idle()
    assert bench.workspace.progress.files_tracked == 3
    shutil.rmtree(root / "lib")
    await bench.sync.refresh(["lib"])
    assert bench.workspace.progress.files_tracked == 1


async def test_sync_finds_what_no_event_reported_after_a_while(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    events = PlayedWatches()
    async with opened(root, watches=events, compare_seconds=0.05) as bench:
        run = asyncio.ensure_future(bench.sync.run())
        await bench.idle()
        (root / "a.py").unlink()
        written(root, {"c.py": "new"})
        await until(lambda: bench.paths == ["c.py", "src/b.py"])
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
    assert phases(caplog).count(Phase.SCANNING) == 1


async def test_sync_compares_everything_before_a_question_after_a_while(
    root: Path,
) -> None:
    async with opened(root, watches=PlayedWatches()) as bench, running(bench):
        await bench.sync.look()  # nothing is known yet, and nothing waited for
        await bench.idle()
        await until(lambda: not bench.sync._one_at_a_time.locked())
        (root / "a.py").unlink()
        await bench.sync.look()
        assert bench.paths == ["a.py", "src/b.py"]
        bench.sync._compared -= 61
        await bench.sync.look()
        assert bench.paths == ["src/b.py"]


async def test_sync_compares_sooner_without_events(root: Path) -> None:
    async with opened(root) as bench:
        await bench.sync.scan()
        await bench.idle()
        (root / "a.py").unlink()
        bench.sync._compared -= 3
        bench.workspace.status.report_watching("changes are looked for every 60 s")
        await bench.sync.look()
        assert bench.paths == ["src/b.py"]


async def test_sync_long_comparison_runs_beside_a_question(root: Path) -> None:
    async with opened(root) as bench:
        await bench.sync.scan()
        await bench.idle()
        (root / "a.py").unlink()
        bench.sync._took = 3.0
        bench.sync._compared -= 61
        await bench.sync.look()
        assert bench.paths == ["a.py", "src/b.py"]
        await until(lambda: bench.paths == ["src/b.py"])


async def test_sync_reads_commits_when_the_repository_changes(root: Path) -> None:
    made = Repository(root)
    made.commit("one")
    async with opened(root) as bench, running(bench):
        await until(lambda: bench.sync.commits.history is not None)
        newest = made.commit("two", "c.py")
        await until(
            lambda: (
                (known := bench.sync.commits.history) is not None
                and known.head == newest
            )
        )


async def test_sync_follows_a_rule_above_the_root(tmp_path: Path) -> None:
    made = Repository(tmp_path.resolve() / "repo")
    root = project(made.root / "pkg", a__py="one", b__txt="two")
    async with engine(tmp_path / "e", root) as opened_engine:
        [space] = opened_engine.workspaces
        await until(lambda: sorted(space.paths()) == ["a.py", "b.txt"])
        (made.root / ".gitignore").write_text("*.txt\n")
        await until(lambda: space.paths() == ["a.py"])
        (made.root / ".gitignore").unlink()
        await until(lambda: sorted(space.paths()) == ["a.py", "b.txt"])
