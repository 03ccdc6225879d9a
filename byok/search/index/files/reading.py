"""Reads files below a root without ever leaving it (docs/reference/security.md, B67).

Each component of a path is opened from the descriptor of the one before, following no
link, so nobody can swap a folder for a link between a check and its use.
"""

import errno
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Self

from byok.search.index.types import FileFacts, SkipReason

_ATTEMPTS = 2
_DEEPEST = 128
_STEERING = 1 << 20
BY_DESCRIPTOR = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_STEP = _SAFE | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", 0)
_LIST = _SAFE | getattr(os, "O_DIRECTORY", 0)
_FILE = (  # a FIFO must not block the opening, nor a terminal take us over
    _SAFE
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)


class Unreadable(Exception):
    """A file cannot or must not be read; `reason` says why."""

    def __init__(self, reason: SkipReason) -> None:
        super().__init__(reason.explanation)
        self.reason = reason


class Folder:
    """A root and what lies below it; paths are relative, with `/`.

    Holds one file descriptor. Several threads may read at once.
    """

    def __init__(self, root: Path) -> None:
        """Open the root, itself a link or not; Unreadable if that fails."""
        self._root = root
        self._fd = -1
        try:
            self.device = root.stat().st_dev
            if BY_DESCRIPTOR:
                self._fd = os.open(root, _STEP & ~getattr(os, "O_NOFOLLOW", 0))
        except (OSError, ValueError) as exc:
            raise Unreadable(SkipReason.NOT_ACCESSIBLE) from exc

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
            Unreadable: it is a link, no file, too large, unstable, or not accessible.
        """
        for _ in range(_ATTEMPTS):
            fd = self._open(path, _FILE)
            try:
                before = self._plain(fd, limit)
                content = _content(fd, before.size)
                if len(content) == before.size and facts_of(os.fstat(fd)) == before:
                    return content, before
            except OSError as exc:
                raise Unreadable(SkipReason.NOT_ACCESSIBLE) from exc
            finally:
                os.close(fd)
        raise Unreadable(SkipReason.UNSTABLE)

    def load(self, path: str) -> bytes | None:
        """Return a file that steers a walk, None if there is none to read."""
        try:
            return self.read(path, _STEERING)[0]
        except Unreadable:
            return None

    def open_folder(self, path: str) -> int:
        """Return a descriptor of a folder ("" is the root) that can be listed.

        Only where the system has such descriptors; the caller closes it.
        """
        if path:
            return self._open(path, _LIST)
        try:
            return os.open(".", _LIST, dir_fd=self._fd)
        except OSError as exc:
            raise Unreadable(SkipReason.NOT_ACCESSIBLE) from exc

    def stat(self, path: str) -> os.stat_result:
        """Return what lies at a path, itself a link or not. Raises Unreadable."""
        parent, _, name = path.rpartition("/")
        try:
            if not BY_DESCRIPTOR:  # between this check and its use a link may appear
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

    def _plain(self, fd: int, limit: int) -> FileFacts:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise Unreadable(SkipReason.NOT_A_FILE)
        if found.st_dev != self.device:
            raise Unreadable(SkipReason.NOT_ACCESSIBLE)
        if found.st_size > limit:
            raise Unreadable(SkipReason.TOO_LARGE)
        return facts_of(found)

    def _open(self, path: str, flags: int) -> int:
        *folders, name = parts = path.split("/")
        if not {"", ".", ".."}.isdisjoint(parts) or len(parts) > _DEEPEST:
            raise Unreadable(SkipReason.NOT_ACCESSIBLE)
        try:
            if not BY_DESCRIPTOR:
                return self._open_checked(path, flags)
            return self._descend(folders, name, flags)
        except ValueError as exc:  # a NUL, or a surrogate that stands for no byte
            raise Unreadable(SkipReason.NOT_ACCESSIBLE) from exc

    def _descend(self, folders: list[str], name: str, flags: int) -> int:
        here = top = self._fd
        step = name
        try:
            for step in folders:
                below = os.open(step, _STEP, dir_fd=here)
                if here != top:
                    os.close(here)
                here = below
            step = name
            return os.open(name, flags, dir_fd=here)
        except OSError as exc:
            raise Unreadable(_reason(exc, step, here)) from exc
        finally:
            if here != top:
                os.close(here)

    def _open_checked(self, path: str, flags: int) -> int:
        """Open where descriptors of folders do not exist (Windows).

        Weaker: a link made between the check and the opening is followed.
        """
        if "\\" in path or ":" in path:
            raise Unreadable(SkipReason.NOT_ACCESSIBLE)
        try:
            root = self._root.resolve(strict=True)
            wanted = root.joinpath(*path.split("/"))
            if wanted.resolve(strict=True) != wanted:
                raise Unreadable(SkipReason.LINK)
            return os.open(wanted, flags)
        except OSError as exc:
            raise Unreadable(SkipReason.NOT_ACCESSIBLE) from exc


def facts_of(found: os.stat_result) -> FileFacts:
    """Return what tells a changed file; each number fits 64 bits with a sign.

    Inodes of some file systems and times after 2262 do not, as they come.
    """
    facts = FileFacts(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    if max(facts) < 1 << 63:
        return facts
    return FileFacts(*((n + (1 << 63)) % (1 << 64) - (1 << 63) for n in facts))


def _content(fd: int, size: int) -> bytes:
    """Read `size` bytes and one more, which tells a file that grew."""
    content = os.read(fd, size + 1)
    while 0 < len(content) < size and (more := os.read(fd, size + 1 - len(content))):
        content += more
    return content


def _reason(error: OSError, name: str, folder: int) -> SkipReason:
    """Say why opening `name` failed; systems differ in the error of a link."""
    if error.errno == errno.ENXIO:
        return SkipReason.NOT_A_FILE
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except OSError:
        return SkipReason.NOT_ACCESSIBLE
    return SkipReason.LINK if stat.S_ISLNK(mode) else SkipReason.NOT_ACCESSIBLE
