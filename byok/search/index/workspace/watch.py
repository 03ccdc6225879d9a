"""File watching: change events of a folder in batches, by each system's means."""

import asyncio
import contextlib
import ctypes
import errno
import logging
import os
import select
import struct
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, Protocol

import watchfiles
from msgspec import Struct

from byok.search.index.files.scan import is_below

# Relative paths, with `/`; None: some were lost, so anything may have changed.
Found = frozenset[str] | None
_STEP_MS, _TIMEOUT_MS = 50, 100


class Watches(Protocol):
    """Watches folders; only those that a walk enters need a watch."""

    def enter(self, path: str) -> None:
        """Watch a folder that is about to be listed."""

    def keep(self, tops: Collection[str], entered: Collection[str]) -> None:
        """Remove the watches at and below `tops` that were not entered again."""

    def follow(self, put: Callable[[Found], None]) -> None:
        """Hand over what happened, first that it has begun, until closed."""

    def close(self) -> None:
        """Let `follow` end; any thread may ask."""


def watches_of(root: Path) -> Watches:
    """Return the watches of this system; OSError if it has no more of them."""
    if sys.platform == "linux":
        return FolderWatches(root)
    return TreeWatch(root)


class TreeWatch:
    """One watch on a whole tree, for systems that have that; follows no links."""

    def __init__(
        self, root: Path, watch: Callable[..., Iterator[Any]] = watchfiles.watch
    ) -> None:
        self._root = root
        self._watch = watch
        self._closing = threading.Event()

    def enter(self, path: str) -> None:
        """Everything is watched already."""

    def keep(self, tops: Collection[str], entered: Collection[str]) -> None:
        """Everything stays watched."""

    def follow(self, put: Callable[[Found], None]) -> None:
        """Hand over what happened, first that it has begun, until closed.

        Raises:
            OSError, RuntimeError: it is not watched any more.
        """
        root = str(self._root)
        begun = False
        for found in self._watch(
            self._root,
            watch_filter=None,
            debounce=_STEP_MS,
            step=_STEP_MS,
            stop_event=self._closing,
            rust_timeout=_TIMEOUT_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            recursive=True,
            ignore_permission_denied=True,
        ):
            if (watchfiles.Change.deleted, root) in found:
                raise FileNotFoundError("the folder is gone")
            if found or not begun:
                put(
                    frozenset(
                        _relative(path, root) for _, path in found if path != root
                    )
                )
            begun = True

    def close(self) -> None:
        """Let `follow` end."""
        self._closing.set()


def _relative(path: str, root: str) -> str:
    return path.removeprefix(root)[1:].replace("\\", "/")


_log = logging.getLogger(__name__)
_QUIET, _LONGEST = 0.06, 0.5  # seconds
_FLOOD = 500  # changed paths; beyond that the whole folder is looked at
_LOOKS_FOR_FOLDER = 2.0  # seconds

_Told = Found | OSError | RuntimeError


class Watcher(Struct, eq=False):
    """Changes below one folder, for as long as it is iterated.

    Changes that follow each other closely are given together: after `quiet` seconds
    without more, after `longest` at the latest. `tell` is called with what users should
    know, "" if nothing. Walks must `enter` every folder before they list it.
    """

    root: Path
    wanted: Callable[[str], bool]
    tell: Callable[[str], None] = lambda note: None
    poll_seconds: float = 60.0
    quiet: float = _QUIET
    longest: float = _LONGEST
    watches: Callable[[Path], Watches] = watches_of
    _watches: Watches | None = None
    _put: Callable[[_Told], None] = lambda told: None
    _failures: int = 0  # in a row
    _complete_since: float | None = None  # every folder has its watch
    _note: str = ""

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

    async def changes(self) -> AsyncGenerator[Found, None]:
        """Yield paths that changed, relative to the root, for ever.

        None stands for anything: it comes first, whenever events may be lost, and if
        watching fails, then again after each pause.
        """
        while True:
            self._complete_since = None
            try:
                async with aclosing(self._watch()) as watched:
                    async for changes in watched:
                        yield changes
            except FileNotFoundError:
                yield None
                await self._root_is_back()
            except (OSError, RuntimeError) as error:
                self._failures = 1 if self._has_lasted() else self._failures + 1
                _log.info("watching %s again: %s", self.root, error)
                if self._failures > 1:
                    self._report(error)
                    await asyncio.sleep(self.poll_seconds)

    def _has_lasted(self) -> bool:
        """Whether watching was complete, for longer than one pause between looks."""
        since = self._complete_since
        return since is not None and time.monotonic() - since > self.poll_seconds

    async def _root_is_back(self) -> None:
        pause = min(_LOOKS_FOR_FOLDER, self.poll_seconds)
        there = await asyncio.to_thread(self.root.is_dir)
        while not there:
            await asyncio.sleep(pause)
            there = await asyncio.to_thread(self.root.is_dir)

    def _report(self, error: Exception | None = None) -> None:
        note = ""
        if error:
            note = f"changes are looked for every {self.poll_seconds:.0f} s"
        if note != self._note and error:
            _log.warning("%s cannot be watched, so %s: %s", self.root, note, error)
        self._note = note
        self.tell(note)

    async def _watch(self) -> AsyncGenerator[Found, None]:
        """Yield changes until watching fails; "anything" when it has begun."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[_Told] = asyncio.Queue()

        def put(told: _Told) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(queue.put_nowait, told)

        watches = self.watches(self.root)
        thread = threading.Thread(
            target=self._follow, args=(watches, put), name="watch", daemon=True
        )
        thread.start()
        self._put, self._watches = put, watches
        try:
            _value_or_raise(await queue.get())
            yield None
            while True:
                if self._watches is not None and self._note:
                    self._report()
                yield await self._collect(queue)
        finally:
            self._watches = None
            watches.close()
            await asyncio.to_thread(thread.join)

    async def _collect(self, queue: "asyncio.Queue[_Told]") -> frozenset[str] | None:
        """Wait for changes, and return those that come closely one after another.

        None if some of them are unknown, or they are very many.
        """
        loop = asyncio.get_running_loop()
        found = _value_or_raise(await queue.get())
        end = loop.time() + self.longest
        while True:
            try:
                async with asyncio.timeout_at(min(end, loop.time() + self.quiet)):
                    more = _value_or_raise(await queue.get())
            except TimeoutError:
                break
            found = None if found is None or more is None else found | more
        return None if found is None or len(found) > _FLOOD else found

    def _follow(self, watches: Watches, put: Callable[[_Told], None]) -> None:
        def put_wanted(found: Found) -> None:
            wanted = found and frozenset(filter(self.wanted, found))
            if wanted or not found:
                put(wanted)

        try:
            watches.follow(put_wanted)
            put(RuntimeError("watching has ended"))
        except (OSError, RuntimeError) as error:
            put(error)
        except Exception as error:
            _log.exception("%s is not watched", self.root)
            put(RuntimeError(str(error)))


def _value_or_raise(told: _Told) -> Found:
    if isinstance(told, Exception):
        raise told
    return told


# File watching on Linux: one inotify watch for each folder.
#
# A watch belongs to a folder, not to a path, so each folder is watched by its path
# without links, and only if a walk enters it. The C library is called directly:
# packages for inotify start programs to find it, which byok avoids.


_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO = 0x2, 0x4, 0x8, 0x40, 0x80
_CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x100, 0x200, 0x400, 0x800
_UNMOUNT, _OVERFLOW, _IGNORED = 0x2000, 0x4000, 0x8000
_ONLY_FOLDERS, _NO_LINKS, _NOT_UNLINKED = 0x1000000, 0x2000000, 0x4000000
_WATCHED = (
    *(_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE),
    *(_DELETE_SELF, _MOVE_SELF, _ONLY_FOLDERS, _NO_LINKS, _NOT_UNLINKED),
)
_MASK = sum(_WATCHED)
_GONE = _DELETE_SELF | _MOVE_SELF | _UNMOUNT
_EVENT = struct.Struct("iIII")  # watch, what happened, a cookie, length of the name
_AT_ONCE = 2**18
_PACE = 0.01  # seconds; who writes without end is heard a hundred times a second
_LIMITS = (errno.ENOSPC, errno.ENOMEM)


class FolderWatches:
    """Folders below a root, or anywhere if their path is absolute; any thread may ask.

    Raises OSError if the system has no more to give.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._libc = ctypes.CDLL(None, use_errno=True)  # other systems have none
        self._fd = _call(self._libc.inotify_init1, os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            self._wake = os.eventfd(0)
        except OSError:
            os.close(self._fd)
            raise
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._paths: dict[int, str] = {}
        self._watches: dict[str, int] = {}

    def enter(self, path: str) -> None:
        """Watch a folder that is about to be listed.

        Raises:
            OSError: the system has no more watches, or the root is gone.
        """
        place = os.fsencode(self._root / path)
        mask = _MASK if path else _MASK & ~_NO_LINKS
        with self._lock:
            if self._closing.is_set():
                return
            try:
                watch = _call(self._libc.inotify_add_watch, self._fd, place, mask)
            except OSError as error:
                if not path or error.errno in _LIMITS:
                    raise
                return  # gone again, or not to be read: the walk says so
            before = self._paths.get(watch, path)
            if before != path and self._watches.get(before) == watch:
                del self._watches[before]  # it was moved
            there = self._watches.get(path, watch)
            if there != watch:
                self._remove(there)  # what was there was moved
            self._paths[watch] = path
            self._watches[path] = watch

    def keep(self, tops: Collection[str], entered: Collection[str]) -> None:
        """Remove the watches at and below `tops` that were not entered again."""
        with self._lock:
            if self._closing.is_set():
                return
            if "" not in tops and self._watches.keys().isdisjoint(tops):
                return
            for path, watch in list(self._watches.items()):
                if path not in entered and is_below(path, tops):
                    self._remove(watch)

    def follow(self, put: Callable[[Found], None]) -> None:
        """Hand over paths that something happened to until closed; None: any did.

        Raises:
            OSError: the root is gone.
        """
        ready = select.poll()
        ready.register(self._fd, select.POLLIN)
        ready.register(self._wake, select.POLLIN)
        try:
            put(frozenset())
            while ready.poll() and not self._closing.wait(_PACE):
                if (
                    told := self._read_events(os.read(self._fd, _AT_ONCE))
                ) != frozenset():
                    put(told)
        finally:
            with self._lock:
                self._closing.set()
                os.close(self._fd)
                os.close(self._wake)

    def close(self) -> None:
        """Let `follow` end; it gives everything back."""
        with self._lock:
            if not self._closing.is_set():
                self._closing.set()
                os.eventfd_write(self._wake, 1)

    def _read_events(self, data: bytes) -> frozenset[str] | None:
        found: set[str] | None = set()
        end = 0
        with self._lock:
            while end < len(data):
                watch, what, _, length = _EVENT.unpack_from(data, end)
                end += _EVENT.size + length
                path = self._paths.get(watch)
                if what & _OVERFLOW:
                    found = None
                elif what & _IGNORED:
                    self._forget(watch)
                elif path is None:
                    continue
                elif length:
                    name = os.fsdecode(data[end - length : end].rstrip(b"\0"))
                    if found is not None:
                        found.add(f"{path}/{name}" if path else name)
                elif not path and what & _GONE:
                    raise FileNotFoundError(errno.ENOENT, "the folder is gone")
        return None if found is None else frozenset(found)

    def _remove(self, watch: int) -> None:
        self._forget(watch)
        # The folder may be gone, and its watch with it.
        self._libc.inotify_rm_watch(self._fd, watch)

    def _forget(self, watch: int) -> None:
        path = self._paths.pop(watch, None)
        if path is not None and self._watches.get(path) == watch:
            del self._watches[path]


def _call(function: Any, *arguments: Any) -> int:
    result = int(function(*arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
