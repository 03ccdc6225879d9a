"""File watching on Linux: one inotify watch for each folder.

A watch belongs to a folder, not to a path, so each folder is watched by its path
without links, and only if a walk enters it. The C library is called directly: packages
for inotify start programs to find it, which byok avoids.
"""

import ctypes
import errno
import os
import select
import struct
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from byok.index.files.scan import is_below

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
_libc = ctypes.CDLL(None, use_errno=True)


class FolderWatches:
    """Folders below a root, or anywhere if their path is absolute; any thread may ask.

    Raises OSError if the system has no more to give.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._fd = _call(_libc.inotify_init1, os.O_CLOEXEC | os.O_NONBLOCK)
        self._wake = os.eventfd(0)
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
                watch = _call(_libc.inotify_add_watch, self._fd, place, mask)
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

    def follow(self, put: Callable[[frozenset[str] | None], None]) -> None:
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
        _libc.inotify_rm_watch(self._fd, watch)

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
