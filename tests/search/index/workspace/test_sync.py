"""Keeping a workspace and the index the same, with workers in the same process."""

import asyncio
import errno
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from byok.search.index.files.ignore import Rules, rules_of
from byok.search.index.files.reading import Unreadable
from byok.search.index.indexer import Indexer
from byok.search.index.store.store import Store
from byok.search.index.types import MAX_BYTES, IndexOptions, Phase
from byok.search.index.workspace import sync
from byok.search.index.workspace.sync import Difference, Disk, Synchroniser
from byok.search.index.workspace.watch import Watcher, watches_of
from byok.search.index.workspace.workspace import TooManyFiles, Workspace
from tests.fakes.engines import InlineWorkers, PlayedWatches, engine, project, written
from tests.fakes.patience import PATIENCE, until
from tests.fakes.project import Repository


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
            lambda blob_id: None,
            on_flush=lambda: self._soon(self._searchable),
        )
        rules = Rules(lambda path: _content(root / path))
        self.workspace = Workspace(1, root, rules)
        self.store.change(
            lambda db: db.execute(
                "INSERT INTO workspace(id, root) VALUES(1, ?)", (str(root),)
            )
        ).result()
        watches = options.pop("watches", watches_of)
        self.sync = Synchroniser(
            self.workspace,
            self.store,
            self.indexer,
            IndexOptions(**{"max_files": 100, **options}),
            settle_seconds=0.05,
            watches=watches,
        )

    def _soon(self, work: Any, *values: Any) -> None:
        self.loop.call_soon_threadsafe(work, *values)

    def _written(self, written: Any) -> None:
        self.workspace.set_member(written.path, written.blob_id)
        self._soon(self._done, written.path)

    def _done(self, path: str) -> None:
        self.sync.handle_written(path, settled=True)

    def _searchable(self) -> None:
        self.sync.handle_searchable()

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


async def test_sync_progress_stays_between_0_and_100_and_ends_at_100(
    bench: Bench,
) -> None:
    written(bench.workspace.root, {f"f{n}.py": f"{n}" for n in range(90)})
    await bench.sync.scan()
    shares = []
    while bench.workspace.status.phase is not Phase.COMPLETE:
        shares.append(bench.workspace.status.percentage)
        await asyncio.sleep(0)
    assert all(0 <= share <= 100 for share in shares)
    assert shares == sorted(shares)
    assert bench.workspace.status.percentage == 100
    assert bench.workspace.status.done == 92


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
    for _ in range(4):
        await bench.sync.scan()
    assert bench.indexer.open_of(1) <= 3
    bench.workers.gate.set()
    await bench.idle()
    assert bench.paths == ["a.py", "src/b.py"]
    assert bench.workspace.status.percentage == 100


async def test_sync_follows_events_and_scans_once_after_a_flood(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    events = PlayedWatches()
    async with opened(root, watches=events) as bench, running(bench):
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


async def test_sync_reports_and_repeats_a_second_look_that_fails(
    bench: Bench, root: Path
) -> None:
    await bench.sync.scan()
    await bench.idle()
    hold = sqlite3.connect(bench.store.database.path)
    bench.store.database.connection.execute("PRAGMA busy_timeout = 10")
    hold.execute("BEGIN IMMEDIATE")
    (root / "src" / "b.py").unlink()
    bench.sync._recheck_later(["src"])
    await until(lambda: "not be synchronised" in bench.workspace.status.note)
    hold.close()
    await until(lambda: bench.paths == ["a.py"] and not bench.workspace.status.note)
    await bench.idle()


@pytest.mark.case("F33")
async def test_sync_without_events_polls_and_says_so(root: Path) -> None:
    events = PlayedWatches()
    events.error = OSError(errno.ENOSPC, "no more watches")
    async with opened(root, watches=events, poll_seconds=0.02) as bench, running(bench):
        await until(
            lambda: bench.workspace.status.note == "changes are looked for every 0 s"
        )
        (root / "a.py").unlink()
        await until(lambda: bench.paths == ["src/b.py"])
        (root / "new.py").write_text("new")
        await until(lambda: "new.py" in bench.paths)


async def test_sync_compares_everything_before_a_question_after_a_while(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "_MAX_WAIT_SECONDS", PATIENCE)
    async with opened(root, watches=PlayedWatches()) as bench, running(bench):
        await (
            bench.sync.detect_changes()
        )  # nothing is known yet, and nothing waited for
        await bench.idle()
        await until(lambda: not bench.sync._one_at_a_time.locked())
        (root / "a.py").unlink()
        await bench.sync.detect_changes()
        assert bench.paths == ["a.py", "src/b.py"]
        bench.sync._compared_at -= 61
        await bench.sync.detect_changes()
        assert bench.paths == ["src/b.py"]


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


# What is on disk and what is known: files, folders, rules and links


KNOWN = ("a.py", "src/b.py", "src/deep/c.py", "src-x.py", "src0.py")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return written(tmp_path / "p", dict.fromkeys(KNOWN, "x"))


def _remember(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO workspace(id, root) VALUES(1, 'p')")
    sql = "INSERT INTO file VALUES(1, ?, 0, 0, 0, 0, NULL, 'binary')"
    db.executemany(sql, [(path,) for path in KNOWN])


@pytest.fixture
def disk(place: Path, tmp_path: Path) -> Iterator[Disk]:
    store = Store(tmp_path / "data.db", tmp_path / "index")
    store.change(_remember).result()
    space = Workspace(1, place, rules_of(place, IndexOptions()))
    yield Disk(space, store, Watcher(place, lambda path: True))
    store.close()


def told(found: Difference) -> tuple[set[str], set[str], set[str]]:
    return {t.path for t in found.changed}, set(found.gone), set(found.tops)


def test_files_are_read_folders_looked_into_and_the_rest_is_gone(
    disk: Disk, place: Path
) -> None:
    (place / "a.py").unlink()
    written(place, {"new/d.py": "x"})
    found = disk.classify(["a.py", "src/b.py", "new", "new/d.py", "none"])
    assert told(found) == ({"src/b.py"}, {"a.py"}, {"new"})


def test_a_folder_that_is_gone_or_a_link_takes_all_that_was_below(
    disk: Disk, place: Path
) -> None:
    (place / "src").rename(place.parent / "away")
    assert told(disk.classify(["src"])) == (set(), {"src/b.py", "src/deep/c.py"}, set())
    (place / "src").symlink_to(place.parent / "away")
    assert told(disk.classify(["src/b.py"])) == (set(), {"src/b.py"}, set())


def test_what_a_walk_leaves_out_is_not_read(disk: Disk, place: Path) -> None:
    written(place, {".gitignore": "*.log\nout/\n", "x.log": "", "out/d.py": ""})
    (place / "big.py").write_bytes(b"x" * (MAX_BYTES + 1))
    (place / "pipe.py").symlink_to("a.py")
    paths = ["x.log", "out", "out/d.py", "big.py", "pipe.py"]
    assert told(disk.classify(paths)) == (set(), set(), set())


def test_only_what_is_below_some_folders_is_compared(disk: Disk, place: Path) -> None:
    (place / "src" / "b.py").unlink()
    (place / "a.py").unlink()
    found = disk.compare(frozenset({"src"}), limit=9)
    assert told(found) == ({"src/deep/c.py"}, {"src/b.py"}, set())
    with pytest.raises(TooManyFiles):
        disk.compare(frozenset({""}), limit=1)


def test_rules_that_change_are_a_look_at_their_folder(disk: Disk, place: Path) -> None:
    written(place, {"src/.gitignore": "deep/\n"})
    assert disk.classify(["src/deep/c.py"]).changed == []
    (place / "src" / ".gitignore").write_text("b.py\n")
    found = disk.compare(frozenset({"src"}), limit=9)
    assert {t.path for t in found.changed} == {"src/.gitignore", "src/deep/c.py"}
    for path, top in (("src/.gitignore", "src"), (".gitignore", "")):
        assert disk.classify([path, "src/deep/c.py", "src/deep"]).tops == {top}


def test_a_root_that_is_gone_says_nothing_about_its_files(
    disk: Disk, place: Path
) -> None:
    place.rename(place.with_name("q"))
    with pytest.raises(Unreadable):
        disk.classify(["a.py"])
