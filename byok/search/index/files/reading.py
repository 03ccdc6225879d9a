"""Reads files below a root without ever leaving it (docs/reference/security.md, B67).

Each component of a path is opened from the descriptor of the previous one, without
following links, so nobody can swap a folder for a link between a check and its use.
"""

import errno
import os
import stat
from pathlib import Path
from typing import Self

from byok.search.index.types import FileFacts, SkipReason

_MAX_ATTEMPTS = 2
_MAX_DEPTH = 128
BY_DESCRIPTOR = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_SAFE_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_STEP_FLAGS = _SAFE_FLAGS | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", 0)
_LIST_FLAGS = _SAFE_FLAGS | getattr(os, "O_DIRECTORY", 0)
_FILE_FLAGS = (  # a FIFO must not block, nor a terminal become byok's
    _SAFE_FLAGS
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)


class Unreadable(Exception):
    """A file cannot or must not be read, for a `reason`."""

    def __init__(self, reason: SkipReason) -> None:
        super().__init__(reason.explanation)
        self.reason = reason


class Folder:
    """A root, from which files below it are read; paths are relative, with `/`.

    It has one file descriptor. Several threads may read at once.
    """

    def __init__(self, root: Path) -> None:
        """Open the root, which may be a link; raises Unreadable."""
        self._root = root
        self._fd = -1
        try:
            self.device = root.stat().st_dev
            if BY_DESCRIPTOR:
                self._fd = os.open(root, _STEP_FLAGS & ~getattr(os, "O_NOFOLLOW", 0))
        except (OSError, ValueError) as exc:
            raise Unreadable(SkipReason.NOT_ACCESSIBLE) from exc

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor; a second call does nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def read(self, path: str, limit: int) -> tuple[bytes, FileFacts]:
        """Return content and facts of a plain file of at most `limit` bytes.

        A file that changes while it is read is read once more.

        Raises:
            Unreadable: it is a link, not a file, too large, unstable or inaccessible.
        """
        for _ in range(_MAX_ATTEMPTS):
            fd = self._open(path, _FILE_FLAGS)
            try:
                before = self._check_plain(fd, limit)
                content = _read_content(fd, before.size)
                if len(content) == before.size and facts_of(os.fstat(fd)) == before:
                    return content, before
            except OSError as exc:
                raise Unreadable(SkipReason.NOT_ACCESSIBLE) from exc
            finally:
                os.close(fd)
        raise Unreadable(SkipReason.UNSTABLE)

    def open_folder(self, path: str) -> int:
        """Return a descriptor of a folder ("" is the root) for listing it.

        Only for systems with such descriptors. The caller closes it.
        """
        if path:
            return self._open(path, _LIST_FLAGS)
        try:
            return os.open(".", _LIST_FLAGS, dir_fd=self._fd)
        except OSError as exc:
            raise Unreadable(SkipReason.NOT_ACCESSIBLE) from exc

    def stat(self, path: str) -> os.stat_result:
        """Return the facts of a path, which may be a link; raises Unreadable."""
        parent, _, name = path.rpartition("/")
        try:
            if not BY_DESCRIPTOR:  # a link may appear between this check and its use
                above = self._root.resolve(strict=True) / parent
                if above.resolve(strict=True) != above:
                    raise Unreadable(SkipReason.LINK)
                return (above / name).lstat()
            fd = self.open_folder(parent)
            try:
                return os.stat(name, dir_fd=fd, follow_symlinks=False)
            finally:
                os.close(fd)
        except (OSError, ValueError) as exc:
            raise Unreadable(SkipReason.NOT_ACCESSIBLE) from exc

    def _check_plain(self, fd: int, limit: int) -> FileFacts:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode):
            raise Unreadable(SkipReason.NOT_A_FILE)
        if facts.st_dev != self.device:
            raise Unreadable(SkipReason.NOT_ACCESSIBLE)
        if facts.st_size > limit:
            raise Unreadable(SkipReason.TOO_LARGE)
        return facts_of(facts)

    def _open(self, path: str, flags: int) -> int:
        *folders, name = parts = path.split("/")
        if not {"", ".", ".."}.isdisjoint(parts) or len(parts) > _MAX_DEPTH:
            raise Unreadable(SkipReason.NOT_ACCESSIBLE)
        try:
            if not BY_DESCRIPTOR:
                return self._open_checked(path, flags)
            return self._descend(folders, name, flags)
        except ValueError as exc:  # a NUL, or a surrogate that encodes no byte
            raise Unreadable(SkipReason.NOT_ACCESSIBLE) from exc

    def _descend(self, folders: list[str], name: str, flags: int) -> int:
        current = top = self._fd
        step = name
        try:
            for step in folders:
                below = os.open(step, _STEP_FLAGS, dir_fd=current)
                if current != top:
                    os.close(current)
                current = below
            step = name
            return os.open(name, flags, dir_fd=current)
        except OSError as exc:
            raise Unreadable(_open_failure(exc, step, current)) from exc
        finally:
            if current != top:
                os.close(current)

    def _open_checked(self, path: str, flags: int) -> int:
        """Open a file without descriptors of folders (Windows).

        This is weaker: a link made between check and opening is followed.
        """
        if "\\" in path or ":" in path:
            raise Unreadable(SkipReason.NOT_ACCESSIBLE)
        try:
            root = self._root.resolve(strict=True)
            full_path = root.joinpath(*path.split("/"))
            if full_path.resolve(strict=True) != full_path:
                raise Unreadable(SkipReason.LINK)
            return os.open(full_path, flags)
        except OSError as exc:
            raise Unreadable(SkipReason.NOT_ACCESSIBLE) from exc


def facts_of(info: os.stat_result) -> FileFacts:
    """Return the facts that show a change, as signed 64-bit numbers.

    Inodes of some file systems and times after 2262 are larger, and wrapped.
    """
    facts = FileFacts(info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)
    if max(facts) < 1 << 63:
        return facts
    return FileFacts(*((n + (1 << 63)) % (1 << 64) - (1 << 63) for n in facts))


def _read_content(fd: int, size: int) -> bytes:
    """Read `size` bytes and one more, which shows that the file grew."""
    content = os.read(fd, size + 1)
    while 0 < len(content) < size and (more := os.read(fd, size + 1 - len(content))):
        content += more
    return content


def _open_failure(error: OSError, name: str, folder: int) -> SkipReason:
    """Return why opening `name` failed; the error for a link depends on the system."""
    if error.errno == errno.ENXIO:
        return SkipReason.NOT_A_FILE
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except OSError:
        return SkipReason.NOT_ACCESSIBLE
    return SkipReason.LINK if stat.S_ISLNK(mode) else SkipReason.NOT_ACCESSIBLE
