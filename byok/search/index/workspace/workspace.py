"""One workspace: a declared folder, its files and their blobs."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from byok.core.escapes import is_text
from byok.search.index.files.ignore import IGNORE_FILES, Rules
from byok.search.index.files.scan import (
    WHOLE,
    Counters,
    Steering,
    is_below,
    walk,
)
from byok.search.index.store.batches import Written
from byok.search.index.store.chunk_index import View
from byok.search.index.types import (
    FileFacts,
    FoundFile,
    Phase,
    SkipReason,
)

_log = logging.getLogger(__name__)
# A file that changes within this time after it was read may keep its time stamp.
_SETTLE_NS = 2_000_000_000


class WorkspaceStatus:
    """The progress of indexing a workspace, and its problems.

    Written by the synchroniser, in the loop; read by status and answers.

    `waiting` of `queued` files are not searchable yet. With `was_complete` answers may
    use the index even while it changes. `trouble` and `unwatched` are sentences for
    users, or "".
    """

    def __init__(self, root: Path) -> None:
        self.phase = Phase.SCANNING
        self.was_complete = False
        self.trouble = ""
        self.unwatched = ""
        self.waiting = 0
        self.queued = 0
        self._logged: Phase | None = None
        self._root = root

    @property
    def note(self) -> str:
        """The problems in words for users, or ""."""
        return "; ".join(filter(None, (self.trouble, self.unwatched)))

    @property
    def done(self) -> int:
        """The number of queued files that are searchable."""
        return self.queued - self.waiting

    @property
    def percentage(self) -> float:
        """The searchable share of the queued files, from 0 to 100."""
        is_new = self.phase is Phase.SCANNING and not self.was_complete
        if is_new or self.phase is Phase.GONE:
            return 0.0
        return round(100.0 * self.done / self.queued, 1) if self.queued else 100.0

    def complete(self) -> None:
        """Record that all files are searchable."""
        self.waiting = 0
        self.was_complete = True
        self.enter(Phase.COMPLETE)

    def give_up(self, max_files: int) -> None:
        """Record that there are more files than the user allows."""
        self.was_complete = False
        self.trouble = f"more than {max_files:,} files: ripgrep answers instead"
        self.enter(Phase.TOO_LARGE)

    def lose_folder(self) -> None:
        """Record that the folder is gone; its files stay in the index."""
        self.trouble = "its folder is gone; when it is back, byok follows it again"
        self.enter(Phase.GONE)

    def report_failure(self, error: BaseException) -> None:
        """Record that the index may not be up to date."""
        self.trouble = f"could not be synchronised: {error}"

    def report_watching(self, sentence: str) -> None:
        """Record why changes are not noticed at once, "" if they are."""
        self.unwatched = sentence

    def add_queued(self, count: int) -> None:
        """Add waiting files; the count starts at 0 when none waited."""
        if not self.waiting:
            self.queued = 0
        self.queued += count
        self.waiting += count

    def enter(self, phase: Phase) -> None:
        """Record the current phase, and log it.

        Files that change in a complete folder are not logged: the log may be one of
        them, and each line would be its next change.
        """
        self.phase = phase
        follows_changes = phase is Phase.INDEXING and self._logged is Phase.COMPLETE
        is_new = phase is not self._logged or phase is Phase.SCANNING
        if is_new and not follows_changes:
            self._logged = phase
            _log.info("%s: %s", self._root, phase)


class TooManyFiles(Exception):
    """A walk found more files than the user's limit."""


class Stopped(Exception):
    """The walk was stopped before its end."""


class Workspace:
    """A declared folder and its files; changed by the writer thread, under a lock.

    `label` precedes its paths where several workspaces answer together.
    """

    def __init__(self, workspace_id: int, root: Path, rules: Rules) -> None:
        self.id = workspace_id
        self.root = root
        self.label = root.name
        self.rules = rules
        self.counters = Counters()
        self.status = WorkspaceStatus(root)
        self.steering = Steering()
        self._stopped = False
        self._members: dict[str, int] = {}
        # Versions that are still searched: those of files with a newer one that is not
        # searchable yet.
        self._older: dict[str, int] = {}
        self._others: set[str] = set()  # files without a blob so far
        self._lock = threading.Lock()
        self._version = 0
        self._view: tuple[int, frozenset[int]] = (0, frozenset())

    def compare(
        self,
        known: Mapping[str, FileFacts],
        *,
        limit: int,
        tops: Collection[str] = WHOLE,
        entering: Callable[[str], None] = lambda path: None,
    ) -> tuple[list[str], list[str]]:
        """Walk the folders `tops`, and compare with the `known` files in them.

        Return the paths of files to read, and of those that are gone. `entering` is
        called with each folder before it is listed.

        Raises:
            TooManyFiles: more than `limit` files would be indexed.
            Unreadable: the folder is gone.
            Stopped: `stop` was called.
        """
        counters = Counters()
        missing = dict(known)
        changed: list[str] = []
        paths: list[str] = []
        batches = walk(self.root, self.rules, counters, tops=tops, entering=entering)
        for batch in batches:
            for entry in batch:
                if not isinstance(entry, FoundFile):
                    continue
                paths.append(entry.path)
                if missing.pop(entry.path, None) == entry.facts:
                    counters.mtime_hits += 1
                else:
                    counters.mtime_misses += 1
                    changed.append(entry.path)
            if len(paths) > limit:
                raise TooManyFiles
            if self._stopped:
                raise Stopped
        if tops == WHOLE:
            self.counters = counters
        with self._lock:
            elsewhere = [p for p in self._others if not is_below(p, tops)]
            self._others = {p for p in paths if p not in self._members}
            self._others.update(elsewhere)
        return changed, list(missing)

    def load(self, files: Mapping[str, int | None]) -> None:
        """Set the files from the database, with their blobs."""
        with self._lock:
            self._members = {p: blob for p, blob in files.items() if blob is not None}
            self._others = files.keys() - self._members.keys()
            self._version += 1

    @property
    def is_usable(self) -> bool:
        """Whether the index has most of the files, be it in an older version."""
        if self.status.phase is Phase.COMPLETE:
            return True
        return self.status.was_complete and 2 * len(self._others) < self.file_count

    @property
    def file_count(self) -> int:
        """The number of files, with and without searchable content."""
        return len(self._members) + len(self._others)

    def expect(self, paths: Iterable[str]) -> None:
        """Add files that will be read."""
        with self._lock:
            self._others.update(p for p in paths if p not in self._members)

    def update_file(self, written: Written) -> bool:
        """Record the new version of a file; return False if it must be read again.

        Called in the writer thread.
        """
        self.set_member(written.path, written.blob_id)
        self.counters.files_read += 1
        self.counters.read_seconds += written.read_seconds
        self.counters.calculate_seconds += written.calculate_seconds
        if written.facts is None:
            return written.reason not in (None, SkipReason.UNSTABLE)
        if is_unsettled(written.facts):
            return False
        # The rules may have changed while a worker had the file.
        return self.rules.reason(written.path) is None

    def set_member(self, path: str, blob_id: int | None) -> None:
        """Set the blob of a file."""
        with self._lock:
            previous = self._members.get(path)
            if blob_id is None:
                self._members.pop(path, None)
                self._others.add(path)
            else:
                self._members[path] = blob_id
                self._others.discard(path)
                if previous not in (None, blob_id):
                    self._older.setdefault(path, previous)
            self._version += 1

    def forget_older_versions(self) -> None:
        """Record that all newest versions are searchable; in the writer thread."""
        with self._lock:
            if self._older:
                self._older.clear()
                self._version += 1

    def drop_members(self, paths: Iterable[str]) -> None:
        """Remove files that are gone."""
        with self._lock:
            for path in paths:
                self._members.pop(path, None)
                self._older.pop(path, None)
                self._others.discard(path)
            self._version += 1

    def blob_of(self, path: str) -> int | None:
        """Return the blob of a file, or None."""
        return self._members.get(path)

    def searched_blobs(self, path: str) -> set[int]:
        """Return the blobs by which a file is found: its newest, perhaps an older."""
        versions = (self._members.get(path), self._older.get(path))
        return {blob_id for blob_id in versions if blob_id is not None}

    def paths(self) -> list[str]:
        """Return the paths of files that have a blob."""
        with self._lock:
            return list(self._members)

    def ids(self) -> frozenset[int]:
        """Return the blobs by which all files are found."""
        return self.members()[1]

    def members(self) -> tuple[str, frozenset[int]]:
        """Return a cache key for the set of `ids`, and these ids."""
        with self._lock:
            version, ids = self._view
            if version != self._version:
                ids = frozenset((*self._members.values(), *self._older.values()))
                self._view = (self._version, ids)
            return f"w{self.id}.{self._version}", ids

    def stop(self) -> None:
        """Stop a running walk."""
        self._stopped = True


def is_unsettled(facts: FileFacts, now_ns: int | None = None) -> bool:
    """Tell whether a file was changed so recently that it must be read again.

    A change within the resolution of time stamps would leave its facts the same. A time
    stamp in the future is ignored.
    """
    now = time.time_ns() if now_ns is None else now_ns
    stamps = [stamp for stamp in (facts.mtime_ns, facts.ctime_ns) if stamp <= now]
    return bool(stamps) and now - max(stamps) < _SETTLE_NS


def is_wanted(workspace: Workspace, path: str) -> bool:
    """Tell whether a change event about a path matters."""
    steering = workspace.steering
    if path in steering.rules or path in steering.commits:
        return True
    if Path(path).is_absolute() or not is_text(path):
        return False
    if path.rpartition("/")[2] in IGNORE_FILES:  # even if one ignores itself
        return True
    return workspace.rules.reason(path) is None


def total_view(workspaces: Iterable[Workspace], chunks: int) -> View:
    """Return the view of several workspaces together."""
    members = [workspace.members() for workspace in workspaces]
    if len(members) == 1:
        [(key, ids)] = members
        return View(key, ids, chunks)
    ids = frozenset().union(*(ids for _, ids in members))
    return View("+".join(key for key, _ in members), ids, chunks)
