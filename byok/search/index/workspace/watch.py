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

_log = logging.getLogger(__name__)

_QUIET_SECONDS, _MAX_COLLECT_SECONDS = 0.06, 0.5
_MAX_PATHS = 500  # of one batch; beyond that the whole folder is scanned
_ROOT_CHECK_SECONDS = 2.0  # between checks for a root that is gone
_TREE_STEP_MS, _TREE_TIMEOUT_MS = 50, 100
# Of inotify(7).
_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO = 0x2, 0x4, 0x8, 0x40, 0x80
_CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x100, 0x200, 0x400, 0x800
_UNMOUNT, _OVERFLOW, _IGNORED = 0x2000, 0x4000, 0x8000
_ONLY_FOLDERS, _NO_LINKS, _NOT_UNLINKED = 0x1000000, 0x2000000, 0x4000000
_MASK_FLAGS = (
    *(_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE),
    *(_DELETE_SELF, _MOVE_SELF, _ONLY_FOLDERS, _NO_LINKS, _NOT_UNLINKED),
)
_MASK = sum(_MASK_FLAGS)
_ROOT_GONE = _DELETE_SELF | _MOVE_SELF | _UNMOUNT
_EVENT = struct.Struct("iIII")  # watch, event mask, cookie, length of the name
_READ_BYTES = 2**18
_READ_PAUSE = 0.01  # seconds: endless changes are read a hundred times a second
_NO_WATCHES_LEFT = (errno.ENOSPC, errno.ENOMEM)

# Relative paths, with `/`; None: events were lost, so anything may have changed.
ChangedPaths = frozenset[str] | None
_Report = ChangedPaths | OSError | RuntimeError


class Watches(Protocol):
    """Watches of folders; only folders that a walk enters need one."""

    def enter(self, path: str) -> None:
        """Watch a folder that is about to be listed."""

    def remove_unentered(self, tops: Collection[str], entered: Collection[str]) -> None:
        """Remove the watches at and below `tops` that were not entered again."""

    def follow(self, put: Callable[[ChangedPaths], None]) -> None:
        """Pass changed paths to `put` until closed; first none, to tell the start."""

    def close(self) -> None:
        """End `follow`; any thread may call this."""


def watches_of(root: Path) -> Watches:
    """Return the watches for this system; OSError if it has none left."""
    if sys.platform == "linux":
        return FolderWatches(root)
    return TreeWatch(root)


class Watcher(Struct, eq=False):
    """The changes below one folder, for as long as `changes` is iterated.

    Paths for which `wanted` is false are ignored. Changes that follow each other
    closely form one batch, which ends after `quiet` seconds without a change, at the
    latest after `longest` seconds. `tell` is called with a note for users, "" where all
    is well. Walks must `enter` every folder before they list it.
    """

    root: Path
    wanted: Callable[[str], bool]
    tell: Callable[[str], None] = lambda note: None
    poll_seconds: float = 60.0
    quiet: float = _QUIET_SECONDS
    longest: float = _MAX_COLLECT_SECONDS
    watches: Callable[[Path], Watches] = watches_of
    _watches: Watches | None = None
    _put: Callable[[_Report], None] = lambda report: None
    _failures: int = 0  # in a row
    _complete_since: float | None = None  # since when each folder has its watch
    _note: str = ""

    def enter(self, path: str) -> None:
        """Watch a folder that is about to be listed; called in the walking thread."""
        if self._watches is not None:
            try:
                self._watches.enter(path)
            except OSError as error:
                self._watches = None
                self._put(error)

    def remove_unentered(self, tops: Collection[str], entered: Collection[str]) -> None:
        """Remove the watches at and below `tops` that were not entered again."""
        if self._watches is not None:
            self._watches.remove_unentered(tops, entered)
            if self._complete_since is None:
                self._complete_since = time.monotonic()

    async def changes(self) -> AsyncGenerator[ChangedPaths, None]:
        """Yield batches of changed paths, relative to the root, for ever.

        None means that anything may have changed. It comes first, whenever events may
        be lost, and while watching fails, then again after each pause.
        """
        while True:
            self._complete_since = None
            try:
                async with aclosing(self._watch()) as watched:
                    async for changes in watched:
                        yield changes
            except FileNotFoundError:
                yield None
                await self._wait_for_root()
            except (OSError, RuntimeError) as error:
                since = self._complete_since
                is_stable = (
                    since is not None and time.monotonic() - since > self.poll_seconds
                )
                self._failures = 1 if is_stable else self._failures + 1
                _log.info("watching %s again: %s", self.root, error)
                if self._failures > 1:
                    self._update_note(error)
                    await asyncio.sleep(self.poll_seconds)

    async def _wait_for_root(self) -> None:
        pause = min(_ROOT_CHECK_SECONDS, self.poll_seconds)
        exists = await asyncio.to_thread(self.root.is_dir)
        while not exists:
            await asyncio.sleep(pause)
            exists = await asyncio.to_thread(self.root.is_dir)

    def _update_note(self, error: Exception | None = None) -> None:
        note = ""
        if error:
            note = f"changes are looked for every {self.poll_seconds:.0f} s"
        if note != self._note and error:
            _log.warning("%s cannot be watched, so %s: %s", self.root, note, error)
        self._note = note
        self.tell(note)

    async def _watch(self) -> AsyncGenerator[ChangedPaths, None]:
        """Yield batches of changes until watching fails; None when it has begun."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[_Report] = asyncio.Queue()

        def put_report(report: _Report) -> None:
            with contextlib.suppress(RuntimeError):  # if the loop is closed
                loop.call_soon_threadsafe(queue.put_nowait, report)

        watches = self.watches(self.root)
        thread = threading.Thread(
            target=self._follow, args=(watches, put_report), name="watch", daemon=True
        )
        thread.start()
        self._put, self._watches = put_report, watches
        try:
            _value_or_raise(await queue.get())
            yield None
            while True:
                if self._watches is not None and self._note:
                    self._update_note()
                yield await self._collect(queue)
        finally:
            self._watches = None
            watches.close()
            await asyncio.to_thread(thread.join)

    async def _collect(self, queue: "asyncio.Queue[_Report]") -> ChangedPaths:
        """Wait for changes, and return those that follow each other closely.

        Return None if events were lost, or for very many changes.
        """
        loop = asyncio.get_running_loop()
        paths = _value_or_raise(await queue.get())
        deadline = loop.time() + self.longest
        while True:
            try:
                async with asyncio.timeout_at(min(deadline, loop.time() + self.quiet)):
                    more = _value_or_raise(await queue.get())
            except TimeoutError:
                break
            paths = None if paths is None or more is None else paths | more
        return None if paths is None or len(paths) > _MAX_PATHS else paths

    def _follow(self, watches: Watches, put_report: Callable[[_Report], None]) -> None:
        def put_matching(paths: ChangedPaths) -> None:
            matching = paths and frozenset(filter(self.wanted, paths))
            if matching or not paths:
                put_report(matching)

        try:
            watches.follow(put_matching)
            put_report(RuntimeError("watching has ended"))
        except (OSError, RuntimeError) as error:
            put_report(error)
        except Exception as error:
            _log.exception("%s is not watched", self.root)
            put_report(RuntimeError(str(error)))


class TreeWatch:
    """One watch of a whole tree, on systems that offer it; follows no links."""

    def __init__(
        self, root: Path, watch: Callable[..., Iterator[Any]] = watchfiles.watch
    ) -> None:
        self._root = root
        self._watch = watch
        self._closing = threading.Event()

    def enter(self, path: str) -> None:
        """Everything is watched already."""

    def remove_unentered(self, tops: Collection[str], entered: Collection[str]) -> None:
        """Everything stays watched."""

    def follow(self, put: Callable[[ChangedPaths], None]) -> None:
        """Pass changed paths to `put` until closed; first none, to tell the start.

        Raises:
            OSError, RuntimeError: the tree is not watched any more.
        """
        root = str(self._root)
        has_begun = False
        for changes in self._watch(
            self._root,
            watch_filter=None,
            debounce=_TREE_STEP_MS,
            step=_TREE_STEP_MS,
            stop_event=self._closing,
            rust_timeout=_TREE_TIMEOUT_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            recursive=True,
            ignore_permission_denied=True,
        ):
            if (watchfiles.Change.deleted, root) in changes:
                raise FileNotFoundError("the folder is gone")
            if changes or not has_begun:
                put(
                    frozenset(
                        path.removeprefix(root)[1:].replace("\\", "/")
                        for _, path in changes
                        if path != root
                    )
                )
            has_begun = True

    def close(self) -> None:
        """End `follow`."""
        self._closing.set()


class FolderWatches:
    """Watches of folders on Linux: below a root, or anywhere by absolute paths.

    inotify watches a folder, not a path, so each folder is watched by its path without
    links, and only if a walk enters it. The C library is called directly: packages for
    inotify start programs to find it, which byok avoids. Any thread may call this.

    Raises:
        OSError: the system has no more watches or descriptors.
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
        full_path = os.fsencode(self._root / path)
        mask = _MASK if path else _MASK & ~_NO_LINKS
        with self._lock:
            if self._closing.is_set():
                return
            try:
                watch = _call(self._libc.inotify_add_watch, self._fd, full_path, mask)
            except OSError as error:
                if not path or error.errno in _NO_WATCHES_LEFT:
                    raise
                return  # the folder is gone or unreadable, which the walk reports
            old_path = self._paths.get(watch, path)
            if old_path != path and self._watches.get(old_path) == watch:
                del self._watches[old_path]  # this folder was moved
            old_watch = self._watches.get(path, watch)
            if old_watch != watch:
                self._remove(old_watch)  # the folder that had this path was moved
            self._paths[watch] = path
            self._watches[path] = watch

    def remove_unentered(self, tops: Collection[str], entered: Collection[str]) -> None:
        """Remove the watches at and below `tops` that were not entered again."""
        with self._lock:
            if self._closing.is_set():
                return
            if "" not in tops and self._watches.keys().isdisjoint(tops):
                return
            for path, watch in list(self._watches.items()):
                if path not in entered and is_below(path, tops):
                    self._remove(watch)

    def follow(self, put: Callable[[ChangedPaths], None]) -> None:
        """Pass changed paths to `put` until closed; first none, to tell the start.

        Raises:
            OSError: the root is gone.
        """
        ready = select.poll()
        ready.register(self._fd, select.POLLIN)
        ready.register(self._wake, select.POLLIN)
        try:
            put(frozenset())
            while ready.poll() and not self._closing.wait(_READ_PAUSE):
                paths = self._read_events(os.read(self._fd, _READ_BYTES))
                if paths != frozenset():
                    put(paths)
        finally:
            with self._lock:
                self._closing.set()
                os.close(self._fd)
                os.close(self._wake)

    def close(self) -> None:
        """End `follow`, which then closes the descriptors."""
        with self._lock:
            if not self._closing.is_set():
                self._closing.set()
                os.eventfd_write(self._wake, 1)

    def _read_events(self, data: bytes) -> ChangedPaths:
        paths: set[str] | None = set()
        end = 0
        with self._lock:
            while end < len(data):
                watch, event, _, length = _EVENT.unpack_from(data, end)
                end += _EVENT.size + length
                path = self._paths.get(watch)
                if event & _OVERFLOW:
                    paths = None
                elif event & _IGNORED:
                    self._forget(watch)
                elif path is None:
                    continue
                elif length:
                    name = os.fsdecode(data[end - length : end].rstrip(b"\0"))
                    if paths is not None:
                        paths.add(f"{path}/{name}" if path else name)
                elif not path and event & _ROOT_GONE:
                    raise FileNotFoundError(errno.ENOENT, "the folder is gone")
        return None if paths is None else frozenset(paths)

    def _remove(self, watch: int) -> None:
        self._forget(watch)
        # The folder may be gone, and its watch with it.
        self._libc.inotify_rm_watch(self._fd, watch)

    def _forget(self, watch: int) -> None:
        path = self._paths.pop(watch, None)
        if path is not None and self._watches.get(path) == watch:
            del self._watches[path]


def _value_or_raise(report: _Report) -> ChangedPaths:
    if isinstance(report, Exception):
        raise report
    return report


def _call(function: Any, *arguments: Any) -> int:
    result = int(function(*arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
