"""Walks a workspace: yields files to index, and skipped paths with the reason.

A synchronous generator, driven from a thread. Folders are opened from the root's
descriptor without following links; ignored folders are not entered, nor is anything
that is mounted below the root.
"""

import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from operator import attrgetter
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from msgspec import Struct

from byok.core.escapes import is_text
from byok.search.index.files.ignore import (
    FolderRules,
    Rules,
    places_outside,
)
from byok.search.index.files.reading import BY_DESCRIPTOR, Folder, Unreadable, facts_of
from byok.search.index.files.repository import repository_of
from byok.search.index.types import MAX_BYTES, FoundFile, Skipped, SkipReason

_BATCH = 256

Entry = FoundFile | Skipped


class Counters(Struct):
    """What the last walk made of the files of a workspace, and what came of it.

    Files are read, cut and tokenised (calculated) by workers, `blobs_uploaded` are
    those whose content a client counts on; times in seconds.
    """

    accepted: int = 0
    not_accessible: int = 0
    not_plain_files: int = 0
    too_large: int = 0
    encoding_errors: int = 0
    ignored: int = 0
    secret: int = 0
    mtime_hits: int = 0
    mtime_misses: int = 0
    names_probed: int = 0
    files_read: int = 0
    blobs_uploaded: int = 0
    walk_seconds: float = 0.0
    stat_seconds: float = 0.0
    read_seconds: float = 0.0
    calculate_seconds: float = 0.0


_COUNTED = {
    SkipReason.NOT_ACCESSIBLE: "not_accessible",
    SkipReason.LINK: "not_plain_files",
    SkipReason.NOT_A_FILE: "not_plain_files",
    SkipReason.TOO_LARGE: "too_large",
    SkipReason.ENCODING: "encoding_errors",
    SkipReason.IGNORED: "ignored",
    SkipReason.EXTENSION: "ignored",
    SkipReason.WORK_TREE: "ignored",
    SkipReason.SECRET: "secret",
}


WHOLE = frozenset({""})


def walk(
    root: Path,
    rules: Rules,
    counters: Counters,
    *,
    tops: Collection[str] = WHOLE,
    entering: Callable[[str], None] = lambda path: None,
) -> Iterator[list[Entry]]:
    """Yield what is below a root, some 256 names at a time, in a fixed order.

    A folder that is left out is one entry and ends in `/`. A list may be empty. Only
    folders at and below `tops` are entered, `entering` is called right before.

    Raises:
        Unreadable: the root itself cannot be listed.
    """
    with Folder(root) as folder:
        steps = _Walk(root, folder, rules, counters, entering).steps(tops)
        while True:
            began = perf_counter()
            stats = counters.stat_seconds
            batch = next(steps, None)
            spent = perf_counter() - began
            counters.walk_seconds += spent - (counters.stat_seconds - stats)
            if batch is None:
                return
            yield batch


class _Walk(Struct, eq=False):
    root: Path
    folder: Folder
    rules: Rules
    counters: Counters
    entering: Callable[[str], None]
    _stack: list[str] = []

    def steps(self, tops: Collection[str]) -> Iterator[list[Entry]]:
        self._stack += sorted(tops, reverse=True)
        batch: list[Entry] = []
        probed = 0
        while self._stack:
            path = self._stack.pop()
            probed += 1
            for names, entries in self._in_folder(path):
                batch += entries
                probed += names
                if probed >= _BATCH:
                    yield batch
                    batch, probed = [], 0
        yield batch

    def _in_folder(self, path: str) -> Iterator[tuple[int, list[Entry]]]:
        """List a folder in bounded steps; yields how many names, and their results."""
        entries: list[os.DirEntry[str]] = []
        self.entering(path)
        try:
            with self._listing(path) as listing:
                while part := list(islice(listing, _BATCH)):
                    entries += part
                    if len(part) == _BATCH:
                        yield _BATCH, []
                entries.sort(key=attrgetter("name"))
                names = {entry.name for entry in entries if entry.name[0] == "."}
                here = self.rules.folder(path, names)
                below: list[str] = []
                prefix = f"{path}/" if path else ""
                for start in range(0, len(entries), _BATCH):
                    part = entries[start : start + _BATCH]
                    yield len(part), self._judge(here, prefix, part, below)
                self._stack += reversed(below)
        except (OSError, Unreadable) as exc:
            if not path:
                raise Unreadable(SkipReason.NOT_ACCESSIBLE) from exc
            yield 0, [self._skip(f"{path}/", SkipReason.NOT_ACCESSIBLE)]

    @contextmanager
    def _listing(self, path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        if not BY_DESCRIPTOR:  # Windows: between check and listing a link may appear
            with os.scandir(self.root / path) as listing:
                yield listing
            return
        fd = self.folder.open_folder(path)
        try:
            with os.scandir(fd) as listing:
                yield listing
        finally:
            os.close(fd)

    def _judge(
        self,
        here: FolderRules,
        prefix: str,
        part: list[os.DirEntry[str]],
        below: list[str],
    ) -> list[Entry]:
        """Judge names by rules, then what is left by what it is; fill `below`."""
        self.counters.names_probed += len(part)
        result: list[Entry] = []
        wanted: list[os.DirEntry[str]] = []
        for entry in part:
            name = entry.name
            is_dir = _is_folder(entry)
            reason = None if name.isascii() or is_text(name) else SkipReason.ENCODING
            reason = reason or here.judge(name, is_dir=is_dir)
            if reason is None:
                wanted.append(entry)
            else:
                shown = os.fsencode(name).decode("utf-8", "backslashreplace")
                slash = "/" if is_dir else ""
                result.append(self._skip(prefix + shown + slash, reason))
        began = perf_counter()
        for entry in wanted:
            path = prefix + entry.name
            judged = self._examine(path, entry)
            if judged is None:
                below.append(path)
            else:
                result.append(judged)
        self.counters.stat_seconds += perf_counter() - began
        return result

    def _examine(self, path: str, entry: os.DirEntry[str]) -> Entry | None:
        """Return what a name is; None for a folder to enter."""
        try:
            found = _stat(entry)
        except OSError:
            return self._skip(path, SkipReason.NOT_ACCESSIBLE)
        reason = _reason(found, self.folder.device)
        is_folder = stat.S_ISDIR(found.st_mode)
        if reason is not None:
            return self._skip(f"{path}/" if is_folder else path, reason)
        if is_folder:
            return None
        self.counters.accepted += 1
        return FoundFile(path, facts_of(found))

    def _skip(self, path: str, reason: SkipReason) -> Skipped:
        counter = _COUNTED[reason]
        setattr(self.counters, counter, getattr(self.counters, counter) + 1)
        return Skipped(path, reason)


def is_folder_at(folder: Folder, path: str) -> bool | None:
    """Tell what a walk finds at a path, by what it is: None if nothing."""
    try:
        found = folder.stat(path)
    except Unreadable:
        return None
    if _reason(found, folder.device) is not None:
        return None
    return stat.S_ISDIR(found.st_mode)


def is_below(path: str, tops: Collection[str]) -> bool:
    """Tell whether a path is one of some folders, or below one of them."""
    while path and path not in tops:
        path = path.rpartition("/")[0]
    return path in tops


def _reason(found: os.stat_result, device: int) -> SkipReason | None:
    """Return why something is left out, by what it is; None for files and folders."""
    mode = found.st_mode
    if stat.S_ISLNK(mode):
        return SkipReason.LINK
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        return SkipReason.NOT_A_FILE
    if found.st_dev != device:  # mounted
        return SkipReason.NOT_ACCESSIBLE
    if stat.S_ISREG(mode) and found.st_size > MAX_BYTES:
        return SkipReason.TOO_LARGE
    return None


def _stat(entry: os.DirEntry[str]) -> os.stat_result:
    if BY_DESCRIPTOR:
        return entry.stat(follow_symlinks=False)
    return Path(entry.path).lstat()  # on Windows an entry knows no inode and device


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


# Files that control indexing: ignore files and git's own, watched but not indexed.


class Steering(NamedTuple):
    """Paths below the root, or absolute ones.

    `rules` may change what is indexed, `commits` say that git has something new.
    """

    rules: frozenset[str] = frozenset()
    commits: frozenset[str] = frozenset()

    @property
    def folders(self) -> set[str]:
        """The folders that these files are in, without the root."""
        paths = self.rules | self.commits
        return {path.rpartition("/")[0] for path in paths} - {""}


def steering_of(root: Path) -> Steering:
    """Return the control files of a workspace; they may not exist."""
    repository = repository_of(root)
    moves = repository.moves if repository else []
    outside = [path for path, _ in places_outside(root)]
    rules = _paths(root, [root / ".git", *moves[:1], *outside])
    return Steering(rules, _paths(root, moves))


def _paths(root: Path, places: Iterable[Path]) -> frozenset[str]:
    return frozenset(
        (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()
        for path in places
    )
