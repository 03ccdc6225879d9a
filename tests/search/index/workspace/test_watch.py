"""Noticing changes: heaps of what the system tells, and what follows failures."""

import asyncio
import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from watchfiles import Change

from byok.search.index.workspace import watch
from byok.search.index.workspace.watch import FolderWatches, TreeWatch, Watcher
from tests.fakes.engines import PlayedWatches, written
from tests.fakes.patience import PATIENCE


async def first(watcher: Watcher, count: int) -> list[Any]:
    """Return the first changes of a watcher, entering the root at each look."""
    found: list[Any] = []
    async with asyncio.timeout(PATIENCE), aclosing(watcher.changes()) as changes:
        async for one in changes:
            found.append(one)
            if one is None:
                watcher.enter("")
            if len(found) == count:
                break
    return found


async def test_watch_reports_a_saved_file_by_its_path(tmp_path: Path) -> None:
    watcher = Watcher(tmp_path, lambda path: path.endswith(".py"))
    async with asyncio.timeout(PATIENCE), aclosing(watcher.changes()) as changes:
        assert await anext(changes) is None
        watcher.enter("")
        (tmp_path / "a.log").write_text("x")
        (tmp_path / "src").mkdir()
        (tmp_path / "a.py").write_text("x")
        assert await anext(changes) == frozenset({"a.py"})


async def test_watch_batches_saves_that_follow_at_once_up_to_a_limit(
    tmp_path: Path,
) -> None:
    events = PlayedWatches()
    watcher = Watcher(
        tmp_path, lambda path: True, quiet=PATIENCE, longest=1.0, watches=events
    )
    for n in range(30):
        events.told("a.py", f"b{n % 2}.py")
    assert await first(watcher, 2) == [None, {"a.py", "b0.py", "b1.py"}]


@pytest.mark.parametrize("told", [frozenset(map(str, range(501))), None])
async def test_watch_flood_or_lost_events_cause_a_full_scan(
    tmp_path: Path, told: frozenset[str] | None
) -> None:
    events = PlayedWatches(told)
    assert await first(Watcher(tmp_path, lambda path: True, watches=events), 2) == [
        None,
        None,
    ]
    assert events.made == 1


async def test_a_folder_that_vanishes_and_comes_back_is_watched_again(
    tmp_path: Path,
) -> None:
    root = tmp_path / "p"
    root.mkdir()
    watcher = Watcher(root, lambda path: True, poll_seconds=0.01)
    async with asyncio.timeout(PATIENCE), aclosing(watcher.changes()) as changes:
        assert await anext(changes) is None
        watcher.enter("")
        shutil.rmtree(root)
        assert await anext(changes) is None
        watcher.enter("")
        waiting = asyncio.ensure_future(anext(changes))
        root.mkdir()
        assert await waiting is None
        watcher.enter("")
        (root / "a").write_text("x")
        assert await anext(changes) == frozenset({"a"})


LIMITED = """
import asyncio, pathlib, sys
from byok.search.index.workspace.watch import Watcher

async def main():
    root = pathlib.Path(sys.argv[1])
    watcher = Watcher(root, lambda path: True, poll_seconds=0.05)
    changes, found = watcher.changes(), []
    while len(found) < 3:
        found.append(await anext(changes))
        for folder in ["", *map(str, range(20))]:
            watcher.enter(folder)
    await changes.aclose()
    print(found)

asyncio.run(main())
"""
FEW = 'echo 5 > /proc/sys/user/max_inotify_watches && exec "$@"'
LIMIT = ("unshare", "-Ur", "sh", "-c", FEW, "")


@pytest.mark.case("F33")
def test_the_systems_own_limit_of_watches_is_survived(tmp_path: Path) -> None:
    try:
        subprocess.run([*LIMIT, "true"], check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no user name space with limits of its own can be made here")
    for n in range(20):
        (tmp_path / str(n)).mkdir()
    done = subprocess.run(
        [*LIMIT, sys.executable, "-c", LIMITED, tmp_path],
        cwd=Path(__file__).parents[4], capture_output=True, text=True, timeout=PATIENCE,
        check=False,
    )  # fmt: skip
    assert done.stdout == "[None, None, None]\n", done.stderr
    assert "cannot be watched, so changes are looked for every" in done.stderr


# Watches on single folders: what they tell, which there are, what follows renames


if sys.platform != "linux":
    pytest.skip("only Linux has these watches", allow_module_level=True)


Told = frozenset[str] | None


class Followed:
    """Watches, and what they tell in a thread."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.watches = FolderWatches(root)
        self.told: SimpleQueue[Told | Exception] = SimpleQueue()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        assert self.told.get(timeout=PATIENCE) == frozenset()

    def _run(self) -> None:
        try:
            self.watches.follow(self.told.put)
        except Exception as error:
            self.told.put(error)

    @property
    def count(self) -> int:
        """How many folders are watched, as the system sees it."""
        info = Path("/proc/self/fdinfo", str(self.watches._fd))
        return info.read_text().count("inotify wd")

    def enter(self, *paths: str) -> None:
        for path in paths:
            self.watches.enter(path)

    def until(self, last: str) -> set[str]:
        """Return what was told of up to some path."""
        found: set[str] = set()
        while last not in found:
            told = self.told.get(timeout=PATIENCE)
            assert isinstance(told, frozenset)
            found |= told
        return found

    def close(self) -> None:
        self.watches.close()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Followed]:
    followed = Followed(written(tmp_path / "p", {"src/sub/a.py": "", "out/b.py": ""}))
    yield followed
    followed.close()


def test_inotify_reports_only_folders_that_were_entered(at: Followed) -> None:
    at.enter("", "src")
    assert at.count == 2
    for path in ("out/b.py", "src/sub/a.py", "src/new.py", "last"):
        (at.root / path).write_text("x")
    assert at.until("last") == {"src/new.py", "last"}


def test_inotify_reports_a_renamed_folder_under_its_new_name(at: Followed) -> None:
    at.enter("", "src", "src/sub")
    (at.root / "src").rename(at.root / "lib")
    assert at.until("lib") == {"src", "lib"}
    at.enter("lib", "lib/sub")
    at.watches.remove_unentered({"src"}, ())
    (at.root / "lib" / "sub" / "c.py").touch()
    assert at.until("lib/sub/c.py") == {"lib/sub/c.py"}


def test_inotify_releases_what_is_not_entered_again(at: Followed) -> None:
    at.enter("", "src", "src/sub", "out")
    at.watches.remove_unentered({"unknown"}, ())
    assert at.count == 4
    at.watches.remove_unentered({"src"}, {"src"})
    assert at.count == 3
    at.watches.remove_unentered({""}, {"", "out"})
    assert at.count == 2
    shutil.rmtree(at.root / "out")
    (at.root / "last").touch()
    at.until("last")
    assert at.count == 1


def test_inotify_reports_a_root_that_vanishes(at: Followed) -> None:
    at.enter("", "src")
    at.root.rename(at.root.with_name("q"))
    assert isinstance(at.told.get(timeout=PATIENCE), FileNotFoundError)
    at.enter("src")
    at.watches.remove_unentered({""}, ())


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
def test_inotify_that_gets_only_a_part_of_what_it_needs_keeps_nothing() -> None:
    import resource

    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, hard))
    try:
        for _ in range(2):  # the second one finds what the first one gave back
            with pytest.raises(OSError, check=lambda e: e.errno == errno.EMFILE):
                FolderWatches(Path("/"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    again = os.open(os.devnull, os.O_RDONLY)
    os.close(again)
    assert again == free


def test_inotify_reports_lost_events(at: Followed) -> None:
    lost = watch._EVENT.pack(-1, watch._OVERFLOW, 0, 0)
    assert at.watches._read_events(lost) is None


# One watch on a whole tree, for systems that have that


def test_watching_is_imported_where_the_c_library_has_no_handle() -> None:
    refuse = "import ctypes\ndef refuse(*_, **__): 1 / 0\nctypes.CDLL = refuse"
    module = "import byok.search.index.workspace.watch"  # as on Windows
    subprocess.run([sys.executable, "-c", f"{refuse}\n{module}"], check=True)


Report = frozenset[str] | None | Exception


def following(watch: TreeWatch) -> tuple[threading.Thread, "SimpleQueue[Report]"]:
    """Follow in a thread, from when it has begun."""
    told: SimpleQueue[Report] = SimpleQueue()

    def run() -> None:
        try:
            watch.follow(told.put)
        except (OSError, RuntimeError) as error:
            told.put(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert told.get(timeout=PATIENCE) == frozenset()
    return thread, told


def test_watches_report_any_change_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    watch = TreeWatch(tmp_path)
    watch.enter("src")
    watch.remove_unentered({""}, ())
    thread, told = following(watch)
    (tmp_path / "src" / "a.py").write_text("x")
    assert told.get(timeout=PATIENCE) == frozenset({"src/a.py"})
    watch.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_watches_report_a_root_that_vanishes_as_an_error() -> None:
    root = Path("/p")

    def events(*_: Any, **__: Any) -> Iterator[set[tuple[Change, str]]]:
        yield set()
        yield set()
        yield {(Change.modified, "/p"), (Change.added, "/p/a")}
        yield {(Change.deleted, "/p")}

    thread, told = following(TreeWatch(root, events))
    assert told.get(timeout=PATIENCE) == frozenset({"a"})
    assert isinstance(told.get(timeout=PATIENCE), FileNotFoundError)
    thread.join(PATIENCE)
