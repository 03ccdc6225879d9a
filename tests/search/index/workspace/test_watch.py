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
