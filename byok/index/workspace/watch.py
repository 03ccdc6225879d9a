"""Collects change events of a folder into batches; polls if watching fails."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

from byok.index.workspace.watches import Found, Watches, watches_of

_log = logging.getLogger(__name__)
_QUIET, _LONGEST = 0.06, 0.5  # seconds
_FLOOD = 500  # changed paths; beyond that the whole folder is looked at
_LOOKS_FOR_FOLDER = 2.0  # seconds

_Told = Found | OSError | RuntimeError


class Changes(NamedTuple):
    """Relative paths that changed; None if anything may have changed."""

    paths: frozenset[str] | None


class Watcher:
    """Changes below one folder, for as long as it is iterated.

    What follows at once is one heap: after `quiet` seconds without more, after
    `longest` at the latest. `tell` is called with what users should know, "" if
    nothing. Walks must `enter` every folder before they list it.
    """

    def __init__(
        self,
        root: Path,
        wanted: Callable[[str], bool],
        *,
        tell: Callable[[str], None] = lambda note: None,
        poll_seconds: float = 60.0,
        quiet: float = _QUIET,
        longest: float = _LONGEST,
        watches: Callable[[Path], Watches] = watches_of,
    ) -> None:
        self._root = root
        self._wanted = wanted
        self._tell = tell
        self._poll_seconds = poll_seconds
        self._quiet = quiet
        self._longest = longest
        self._make = watches
        self._watches: Watches | None = None
        self._put: Callable[[_Told], None] = lambda told: None
        self._failures = 0  # in a row
        self._complete_since: float | None = None  # every folder has its watch
        self._note = ""

    def enter(self, path: str) -> None:
        """Watch a folder that is about to be listed, in the thread that walks."""
        if self._watches is not None:
            try:
                self._watches.enter(path)
            except OSError as error:
                self._watches = None
                self._put(error)

    def keep(self, tops: Collection[str], entered: Collection[str]) -> None:
        """Watch no others at and below `tops` than those that were entered."""
        if self._watches is not None:
            self._watches.keep(tops, entered)
            if self._complete_since is None:
                self._complete_since = time.monotonic()

    async def changes(self) -> AsyncGenerator[Changes, None]:
        """Yield changes for ever; "anything" first, and whenever events may be lost.

        If watching fails, "anything" is yielded, and again after each pause.
        """
        while True:
            self._complete_since = None
            try:
                async with aclosing(self._watch()) as watched:
                    async for changes in watched:
                        yield changes
            except FileNotFoundError:
                yield Changes(None)
                await self._root_is_back()
            except (OSError, RuntimeError) as error:
                self._failures = 1 if self._has_lasted() else self._failures + 1
                _log.info("watching %s again: %s", self._root, error)
                if self._failures > 1:
                    self._say(error)
                    await asyncio.sleep(self._poll_seconds)

    def _has_lasted(self) -> bool:
        """Whether watching was complete, for longer than one pause between looks."""
        since = self._complete_since
        return since is not None and time.monotonic() - since > self._poll_seconds

    async def _root_is_back(self) -> None:
        pause = min(_LOOKS_FOR_FOLDER, self._poll_seconds)
        there = await asyncio.to_thread(self._root.is_dir)
        while not there:
            await asyncio.sleep(pause)
            there = await asyncio.to_thread(self._root.is_dir)

    def _say(self, error: Exception | None = None) -> None:
        note = ""
        if error:
            note = f"changes are looked for every {self._poll_seconds:.0f} s"
        if note != self._note and error:
            _log.warning("%s cannot be watched, so %s: %s", self._root, note, error)
        self._note = note
        self._tell(note)

    async def _watch(self) -> AsyncGenerator[Changes, None]:
        """Yield changes until watching fails; "anything" when it has begun."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[_Told] = asyncio.Queue()

        def put(told: _Told) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(queue.put_nowait, told)

        watches = self._make(self._root)
        thread = threading.Thread(
            target=self._follow, args=(watches, put), name="watch", daemon=True
        )
        thread.start()
        self._put, self._watches = put, watches
        try:
            _value_or_raise(await queue.get())
            yield Changes(None)
            while True:
                if self._watches is not None and self._note:
                    self._say()
                yield Changes(await self._heap(queue))
        finally:
            self._watches = None
            watches.close()
            await asyncio.to_thread(thread.join)

    async def _heap(self, queue: "asyncio.Queue[_Told]") -> frozenset[str] | None:
        """Return what changed at one time, None if that is unknown."""
        loop = asyncio.get_running_loop()
        found = _value_or_raise(await queue.get())
        end = loop.time() + self._longest
        while True:
            try:
                async with asyncio.timeout_at(min(end, loop.time() + self._quiet)):
                    more = _value_or_raise(await queue.get())
            except TimeoutError:
                break
            found = None if found is None or more is None else found | more
        return None if found is None or len(found) > _FLOOD else found

    def _follow(self, watches: Watches, put: Callable[[_Told], None]) -> None:
        def put_wanted(found: Found) -> None:
            wanted = found and frozenset(filter(self._wanted, found))
            if wanted or not found:
                put(wanted)

        try:
            watches.follow(put_wanted)
            put(RuntimeError("watching has ended"))
        except (OSError, RuntimeError) as error:
            put(error)
        except Exception as error:
            _log.exception("%s is not watched", self._root)
            put(RuntimeError(str(error)))


def _value_or_raise(told: _Told) -> Found:
    if isinstance(told, Exception):
        raise told
    return told
