"""Walks a workspace: yields files to index, and skipped paths with the reason.

The walk is a synchronous generator that runs in a thread. Folders are opened from the
root's descriptor without following links; ignored folders are not entered, and neither
is anything mounted below the root.
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

_BATCH_NAMES = 256
WHOLE = frozenset({""})
Entry = FoundFile | Skipped


class Counters(Struct):
    """Counts and times (in seconds) of the last walk, and of the work that followed.

    Workers read, split and tokenise (calculate) files. `blobs_uploaded` are those whose
    content was stored for a client.
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


_COUNTER_NAMES = {
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


def walk(
    root: Path,
    rules: Rules,
    counters: Counters,
    *,
    tops: Collection[str] = WHOLE,
    entering: Callable[[str], None] = lambda path: None,
) -> Iterator[list[Entry]]:
    """Yield the entries below a root, some 256 names at a time, in a fixed order.

    A skipped folder is one entry, which ends in `/`. A list may be empty. Only folders
    at and below `tops` are entered; `entering` is called just before.

    Raises:
        Unreadable: the root itself cannot be listed.
    """
    with Folder(root) as folder:
        steps = _Walk(root, folder, rules, counters, entering).steps(tops)
        while True:
            start = perf_counter()
            stat_seconds = counters.stat_seconds
            batch = next(steps, None)
            seconds = perf_counter() - start
            counters.walk_seconds += seconds - (counters.stat_seconds - stat_seconds)
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
            for names, entries in self._list_folder(path):
                batch += entries
                probed += names
                if probed >= _BATCH_NAMES:
                    yield batch
                    batch, probed = [], 0
        yield batch

    def _list_folder(self, path: str) -> Iterator[tuple[int, list[Entry]]]:
        """List a folder in steps; yield the number of names, and their entries."""
        entries: list[os.DirEntry[str]] = []
        self.entering(path)
        try:
            with self._scan_folder(path) as listing:
                while batch := list(islice(listing, _BATCH_NAMES)):
                    entries += batch
                    if len(batch) == _BATCH_NAMES:
                        yield _BATCH_NAMES, []
                entries.sort(key=attrgetter("name"))
                names = {entry.name for entry in entries if entry.name[0] == "."}
                folder_rules = self.rules.folder(path, names)
                below: list[str] = []
                prefix = f"{path}/" if path else ""
                for start in range(0, len(entries), _BATCH_NAMES):
                    batch = entries[start : start + _BATCH_NAMES]
                    yield (
                        len(batch),
                        self._judge_entries(folder_rules, prefix, batch, below),
                    )
                self._stack += reversed(below)
        except (OSError, Unreadable) as exc:
            if not path:
                raise Unreadable(SkipReason.NOT_ACCESSIBLE) from exc
            yield 0, [self._skip(f"{path}/", SkipReason.NOT_ACCESSIBLE)]

    @contextmanager
    def _scan_folder(self, path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        if not BY_DESCRIPTOR:  # Windows: a link may appear between check and listing
            with os.scandir(self.root / path) as listing:
                yield listing
            return
        fd = self.folder.open_folder(path)
        try:
            with os.scandir(fd) as listing:
                yield listing
        finally:
            os.close(fd)

    def _judge_entries(
        self,
        folder_rules: FolderRules,
        prefix: str,
        batch: list[os.DirEntry[str]],
        below: list[str],
    ) -> list[Entry]:
        """Apply the rules to names, then check the files; add folders to `below`."""
        self.counters.names_probed += len(batch)
        result: list[Entry] = []
        candidates: list[os.DirEntry[str]] = []
        for entry in batch:
            name = entry.name
            is_dir = _is_folder(entry)
            reason = None if name.isascii() or is_text(name) else SkipReason.ENCODING
            reason = reason or folder_rules.judge(name, is_dir=is_dir)
            if reason is None:
                candidates.append(entry)
            else:
                printable = os.fsencode(name).decode("utf-8", "backslashreplace")
                slash = "/" if is_dir else ""
                result.append(self._skip(prefix + printable + slash, reason))
        start = perf_counter()
        for entry in candidates:
            path = prefix + entry.name
            outcome = self._examine(path, entry)
            if outcome is None:
                below.append(path)
            else:
                result.append(outcome)
        self.counters.stat_seconds += perf_counter() - start
        return result

    def _examine(self, path: str, entry: os.DirEntry[str]) -> Entry | None:
        """Return the entry of a name, or None for a folder to enter."""
        try:
            if BY_DESCRIPTOR:
                facts = entry.stat(follow_symlinks=False)
            else:  # on Windows an entry lacks inode and device
                facts = Path(entry.path).lstat()
        except OSError:
            return self._skip(path, SkipReason.NOT_ACCESSIBLE)
        reason = _file_reason(facts, self.folder.device)
        is_folder = stat.S_ISDIR(facts.st_mode)
        if reason is not None:
            return self._skip(f"{path}/" if is_folder else path, reason)
        if is_folder:
            return None
        self.counters.accepted += 1
        return FoundFile(path, facts_of(facts))

    def _skip(self, path: str, reason: SkipReason) -> Skipped:
        counter = _COUNTER_NAMES[reason]
        setattr(self.counters, counter, getattr(self.counters, counter) + 1)
        return Skipped(path, reason)


def is_folder_at(folder: Folder, path: str) -> bool | None:
    """Tell whether a path is a folder; None if a walk would skip it by its kind."""
    try:
        facts = folder.stat(path)
    except Unreadable:
        return None
    if _file_reason(facts, folder.device) is not None:
        return None
    return stat.S_ISDIR(facts.st_mode)


def is_below(path: str, tops: Collection[str]) -> bool:
    """Tell whether a path is one of some folders, or below one of them."""
    while path and path not in tops:
        path = path.rpartition("/")[0]
    return path in tops


class Steering(NamedTuple):
    """Files that control indexing and are watched, not indexed.

    Their paths are relative to the root, or absolute. A change of `rules` may change
    which files are indexed, one of `commits` means that git has new commits.
    """

    rules: frozenset[str] = frozenset()
    commits: frozenset[str] = frozenset()

    @property
    def folders(self) -> set[str]:
        """The folders of these files, without the root."""
        paths = self.rules | self.commits
        return {path.rpartition("/")[0] for path in paths} - {""}


def steering_of(root: Path) -> Steering:
    """Return the control files of a workspace; they may not exist."""
    repository = repository_of(root)
    git_files = repository.changing_files if repository else []
    outside = [path for path, _ in places_outside(root)]
    rules = _paths(root, [root / ".git", *git_files[:1], *outside])
    return Steering(rules, _paths(root, git_files))


def _file_reason(facts: os.stat_result, device: int) -> SkipReason | None:
    """Return why a path is skipped by its kind; None for files and folders."""
    mode = facts.st_mode
    if stat.S_ISLNK(mode):
        return SkipReason.LINK
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        return SkipReason.NOT_A_FILE
    if facts.st_dev != device:  # mounted
        return SkipReason.NOT_ACCESSIBLE
    if stat.S_ISREG(mode) and facts.st_size > MAX_BYTES:
        return SkipReason.TOO_LARGE
    return None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _paths(root: Path, paths: Iterable[Path]) -> frozenset[str]:
    return frozenset(
        (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()
        for path in paths
    )
