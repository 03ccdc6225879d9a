"""Noticing changes: by events of the system, and without them."""

import asyncio
import logging
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from watchfiles import Change

from byok.context.watch import Changes, Watcher
from tests.fakes.engines import SECONDS

Found = set[tuple[Change, str]]


class Events:
    """Plays what `watch` would yield: sets of changes, errors, the end."""

    def __init__(self, *runs: list[Found | Exception]) -> None:
        self._runs = list(runs)
        self.begun = 0
        self.lenient: list[bool] = []
        self.wanted: Callable[[Change, str], bool] = lambda *_: True

    def __call__(
        self,
        root: Path,
        *,
        watch_filter: Any,
        stop_event: threading.Event,
        ignore_permission_denied: bool,
        **_: Any,
    ) -> Iterator[Found]:
        self.begun += 1
        self.wanted = watch_filter
        self.lenient.append(ignore_permission_denied)
        run = self._runs.pop(0) if self._runs else []
        for step in run:
            if isinstance(step, Exception):
                raise step
            yield step
        if not self._runs:
            yield set()
            stop_event.wait(SECONDS)


async def first(watcher: Watcher, count: int) -> list[Changes]:
    """Return the first changes of a watcher."""
    found: list[Changes] = []
    async with asyncio.timeout(SECONDS), aclosing(watcher.changes()) as changes:
        async for one in changes:
            found.append(one)
            if len(found) == count:
                break
    return found


async def test_a_saved_file_is_told_by_its_path(tmp_path: Path) -> None:
    watcher = Watcher(tmp_path, lambda path: path.endswith(".py"), debounce_ms=50)
    async with asyncio.timeout(SECONDS), aclosing(watcher.changes()) as changes:
        assert (await anext(changes)).paths is None
        (tmp_path / "a.log").write_text("x")
        (tmp_path / "src").mkdir()
        (tmp_path / "a.py").write_text("x")
        assert (await anext(changes)).paths == frozenset({"a.py"})


async def test_nothing_falls_between_the_first_look_and_the_events(
    tmp_path: Path,
) -> None:
    watcher = Watcher(tmp_path, lambda path: True, debounce_ms=50)
    async with asyncio.timeout(SECONDS), aclosing(watcher.changes()) as changes:
        assert (await anext(changes)).paths is None
        (tmp_path / "meanwhile").write_text("x")
        assert (await anext(changes)).paths == frozenset({"meanwhile"})


async def test_a_folder_that_vanishes_and_comes_back_is_watched_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "p"
    root.mkdir()
    watcher = Watcher(root, lambda path: True, poll_seconds=0.01, debounce_ms=50)
    async with asyncio.timeout(SECONDS), aclosing(watcher.changes()) as changes:
        assert await anext(changes) == Changes(None)
        shutil.rmtree(root)
        assert await anext(changes) == Changes(None)
        assert "are looked for every" in watcher.note
        root.mkdir()
        while watcher.note:
            assert await anext(changes) == Changes(None)
        (root / "a").write_text("x")
        assert (await anext(changes)).paths == frozenset({"a"})
    assert caplog.text.count("cannot be watched") == 1


async def test_a_limit_of_the_system_is_told_at_once_and_a_clock_takes_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    limit: list[Found | Exception] = [OSError("OS file watch limit reached")]
    events = Events(limit, limit, limit, [])
    watcher = Watcher(tmp_path, lambda path: True, poll_seconds=0.01, watch=events)
    assert await first(watcher, 3) == [Changes(None)] * 3
    assert watcher.note == "changes are looked for every 0 s"
    assert events.begun == 3
    assert caplog.text.count("OS file watch limit reached") == 1


async def test_a_folder_that_may_not_be_read_does_not_stop_the_others(
    tmp_path: Path,
) -> None:
    change: Found = {(Change.added, f"{tmp_path}/a")}
    denied = OSError("Permission denied (os error 13) about ['/x']")
    events = Events([denied], [change])
    found = await first(Watcher(tmp_path, lambda path: True, watch=events), 2)
    assert [one.paths for one in found] == [None, frozenset({"a"})]
    assert events.lenient == [False, True]


async def test_the_note_goes_when_events_come_again(tmp_path: Path) -> None:
    change: Found = {(Change.added, f"{tmp_path}/a")}
    events = Events([OSError("limit")], [change])
    watcher = Watcher(tmp_path, lambda path: True, poll_seconds=0.01, watch=events)
    found = await first(watcher, 3)
    assert [one.paths for one in found] == [None, None, {"a"}]
    assert watcher.note == ""


async def test_events_about_the_folder_itself_are_none_of_its_files(
    tmp_path: Path,
) -> None:
    events = Events(
        [{(Change.modified, str(tmp_path))}, {(Change.modified, f"{tmp_path}/a")}]
    )
    found = await first(Watcher(tmp_path, lambda path: True, watch=events), 2)
    assert [one.paths for one in found] == [None, {"a"}]
    assert events.wanted(Change.deleted, str(tmp_path))


async def test_it_is_asked_about_relative_paths(tmp_path: Path) -> None:
    asked: list[str] = []

    def wanted(path: str) -> bool:
        asked.append(path)
        return False

    events = Events([])
    await first(Watcher(tmp_path, wanted, watch=events), 1)
    assert not events.wanted(Change.added, f"{tmp_path}/src/a.py")
    assert asked == ["src/a.py"]


LIMITED = """
import asyncio, pathlib, sys
from byok.context.watch import Watcher

async def main():
    root = pathlib.Path(sys.argv[1])
    changes = Watcher(root, lambda path: True, poll_seconds=0.05).changes()
    found = [(await anext(changes)).paths for _ in range(3)]
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
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    assert done.stdout == "[None, None, None]\n", done.stderr
    assert "cannot be watched, so changes are looked for every" in done.stderr
