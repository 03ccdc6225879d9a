"""Noticing changes: heaps of what the system tells, and what follows failures."""

import asyncio
import errno
import logging
import shutil
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from byok.search.index.workspace.watch import Changes, Watcher
from tests.fakes.patience import PATIENCE
from tests.fakes.watching import PlayedWatches

GBK = b"\xd6\xd0\xce\xc4.txt"


async def first(watcher: Watcher, count: int) -> list[Any]:
    """Return the first changes of a watcher, entering the root at each look."""
    found: list[Any] = []
    async with asyncio.timeout(PATIENCE), aclosing(watcher.changes()) as changes:
        async for one in changes:
            found.append(one.paths)
            if one.paths is None:
                watcher.enter("")
            if len(found) == count:
                break
    return found


def telling(
    root: Path, events: PlayedWatches, notes: list[str], *, pause: float
) -> Watcher:
    """Return a watcher of played events, whose notes are kept."""
    return Watcher(
        root, lambda path: True, tell=notes.append, poll_seconds=pause, watches=events
    )


async def test_watch_reports_a_saved_file_by_its_path(tmp_path: Path) -> None:
    watcher = Watcher(tmp_path, lambda path: path.endswith(".py"))
    async with asyncio.timeout(PATIENCE), aclosing(watcher.changes()) as changes:
        assert (await anext(changes)).paths is None
        watcher.enter("")
        (tmp_path / "a.log").write_text("x")
        (tmp_path / "src").mkdir()
        (tmp_path / "a.py").write_text("x")
        assert (await anext(changes)).paths == frozenset({"a.py"})


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


async def test_watch_batch_ends_when_nothing_more_comes(tmp_path: Path) -> None:
    events = PlayedWatches(frozenset({"a"}), frozenset({"b"}))
    watcher = Watcher(
        tmp_path, lambda path: True, quiet=0.1, longest=PATIENCE, watches=events
    )
    assert await first(watcher, 2) == [None, {"a", "b"}]


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
        assert await anext(changes) == Changes(None)
        watcher.enter("")
        shutil.rmtree(root)
        assert await anext(changes) == Changes(None)
        watcher.enter("")
        waiting = asyncio.ensure_future(anext(changes))
        root.mkdir()
        assert await waiting == Changes(None)
        watcher.enter("")
        (root / "a").write_text("x")
        assert (await anext(changes)).paths == frozenset({"a"})


async def test_watch_limit_of_the_system_is_reported_and_replaced_by_polling(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    notes: list[str] = []
    events = PlayedWatches()
    events.error = OSError(errno.ENOSPC, "no more watches")
    watcher = telling(tmp_path, events, notes, pause=1)
    assert await first(watcher, 4) == [None] * 4
    assert set(notes) == {"changes are looked for every 1 s"}
    assert caplog.text.count("no more watches") == 1


async def test_watch_limit_is_reported_however_long_the_walk_before_it_takes(
    tmp_path: Path,
) -> None:
    notes: list[str] = []
    events = PlayedWatches()
    events.error = OSError(errno.ENOSPC, "no more watches")
    watcher = telling(tmp_path, events, notes, pause=0.01)
    async with asyncio.timeout(PATIENCE), aclosing(watcher.changes()) as changes:
        for _ in range(3):
            await anext(changes)
            await asyncio.sleep(0.02)  # a walk longer than the pause
            watcher.enter("")
            watcher.keep({""}, {""})
    assert set(notes) == {"changes are looked for every 0 s"}


async def test_watch_failure_after_a_long_time_begins_the_count_anew(
    tmp_path: Path,
) -> None:
    notes: list[str] = []
    events = PlayedWatches()
    watcher = telling(tmp_path, events, notes, pause=0.01)
    async with asyncio.timeout(PATIENCE), aclosing(watcher.changes()) as changes:
        for _ in range(3):
            await anext(changes)
            watcher.enter("")
            watcher.keep({""}, {""})
            await asyncio.sleep(0.02)
            events.queue.put(OSError("x"))
    assert notes == []


@pytest.mark.parametrize("error", [RuntimeError("x"), OSError("x"), ValueError("x")])
async def test_watch_failure_costs_one_full_scan(
    tmp_path: Path, error: Exception
) -> None:
    notes: list[str] = []
    events = PlayedWatches(error, frozenset({"a"}))
    watcher = Watcher(tmp_path, lambda path: True, tell=notes.append, watches=events)
    assert await first(watcher, 3) == [None, None, {"a"}]
    assert notes == []


async def test_watch_note_is_removed_when_events_come_again(tmp_path: Path) -> None:
    notes: list[str] = []
    events = PlayedWatches(OSError("x"), OSError("x"), frozenset({"a"}))
    watcher = telling(tmp_path, events, notes, pause=1)
    assert await first(watcher, 4) == [None, None, None, {"a"}]
    assert notes == ["changes are looked for every 1 s", ""]


async def test_watch_ignores_a_name_that_is_no_text(tmp_path: Path) -> None:
    watcher = Watcher(tmp_path, lambda path: path == "a.py")
    async with asyncio.timeout(PATIENCE), aclosing(watcher.changes()) as changes:
        assert (await anext(changes)).paths is None
        watcher.enter("")
        (Path(bytes(tmp_path).decode()) / GBK.decode(errors="surrogateescape")).touch()
        (tmp_path / "a.py").write_text("x")
        assert (await anext(changes)).paths == frozenset({"a.py"})


async def test_watch_filter_gets_relative_paths(tmp_path: Path) -> None:
    asked: list[str] = []

    def wanted(path: str) -> bool:
        asked.append(path)
        return path == "b.py"

    events = PlayedWatches(frozenset({"src/a.py"}), frozenset({"b.py"}))
    assert await first(Watcher(tmp_path, wanted, watches=events), 2) == [None, {"b.py"}]
    assert asked == ["src/a.py", "b.py"]


LIMITED = """
import asyncio, pathlib, sys
from byok.search.index.workspace.watch import Watcher

async def main():
    root = pathlib.Path(sys.argv[1])
    watcher = Watcher(root, lambda path: True, poll_seconds=0.05)
    changes, found = watcher.changes(), []
    while len(found) < 3:
        found.append((await anext(changes)).paths)
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
