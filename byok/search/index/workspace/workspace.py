"""One workspace: a declared folder, its files and their blobs."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from byok.core.escapes import is_text
from byok.search.index.files.ignore import IGNORE_FILES, Rules
from byok.search.index.files.scan import (
    WHOLE,
    Counters,
    Steering,
    is_below,
    steering_of,
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
# Whatever changes within this time after a file was read may have the same time stamp.
_SETTLES_NS = 2_000_000_000


class WorkspaceStatus:
    """How far the indexing of a workspace is, and what is wrong with it.

    Written by the synchroniser, in the loop; read by status and answers.

    `waiting` of `queued` files are not searchable yet. `was_complete` says that answers
    may use what is indexed, also while it changes. `trouble` and `unwatched` are
    sentences for users, "" where all is well.
    """

    def __init__(self, root: Path) -> None:
        self.phase = Phase.SCANNING
        self.was_complete = False
        self.trouble = ""
        self.unwatched = ""
        self.waiting = 0
        self.queued = 0
        self._told: Phase | None = None  # in the log
        self._root = root

    @property
    def note(self) -> str:
        """What users should know, "" if nothing."""
        return "; ".join(filter(None, (self.trouble, self.unwatched)))

    @property
    def done(self) -> int:
        """How many of the queued files are searchable."""
        return self.queued - self.waiting

    @property
    def percentage(self) -> float:
        """How much of what was queued is done, from 0 to 100."""
        is_new = self.phase is Phase.SCANNING and not self.was_complete
        if is_new or self.phase is Phase.GONE:
            return 0.0
        return round(100.0 * self.done / self.queued, 1) if self.queued else 100.0

    def complete(self) -> None:
        """Note that everything found is searchable."""
        self.waiting = 0
        self.was_complete = True
        self.enter(Phase.COMPLETE)

    def give_up(self, max_files: int) -> None:
        """Note that there are more files than the user allows."""
        self.was_complete = False
        self.trouble = f"more than {max_files:,} files: ripgrep answers instead"
        self.enter(Phase.TOO_LARGE)

    def lose_folder(self) -> None:
        """Note that the folder is gone; what is known of it is kept."""
        self.trouble = "its folder is gone; when it is back, byok follows it again"
        self.enter(Phase.GONE)

    def report_failure(self, error: BaseException) -> None:
        """Note that the index may not be up to date."""
        self.trouble = f"could not be synchronised: {error}"

    def report_watching(self, sentence: str) -> None:
        """Note why changes are not seen at once, "" if they are."""
        self.unwatched = sentence

    def add_queued(self, count: int) -> None:
        """Add waiting files; the count starts at 0 when none waited."""
        if not self.waiting:
            self.queued = 0
        self.queued += count
        self.waiting += count

    def enter(self, phase: Phase) -> None:
        """Note what is done now.

        Of files that change in a complete folder no line is written: the log may be one
        of them, and each line its next change.
        """
        self.phase = phase
        follows_changes = phase is Phase.INDEXING and self._told is Phase.COMPLETE
        is_new = phase is not self._told or phase is Phase.SCANNING
        if is_new and not follows_changes:
            self._told = phase
            _log.info("%s: %s", self._root, phase)


class TooManyFiles(Exception):
    """A walk found more files than the user's limit."""


class Stopped(Exception):
    """The walk was stopped before its end."""


class Comparison(NamedTuple):
    """Differences between a walk and the index: paths to read, paths that are gone."""

    changed: list[str]
    gone: list[str]


class Workspace:
    """A declared folder and its files; changed by the writer thread, under a lock.

    `label` stands before its paths where several workspaces answer together.
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
        # What is still found of files whose new version is not searchable yet.
        self._older: dict[str, int] = {}
        self._others: set[str] = set()  # found, and without a version so far
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
    ) -> Comparison:
        """Walk some folders and compare with the files known at and below `tops`.

        Raises:
            TooManyFiles: more than `limit` files would be indexed.
            Unreadable: the folder is gone.
            Stopped: `stop` was called.
        """
        counters = Counters()
        missing = dict(known)
        changed: list[str] = []
        found: list[str] = []
        steps = walk(self.root, self.rules, counters, tops=tops, entering=entering)
        for batch in steps:
            for entry in batch:
                if not isinstance(entry, FoundFile):
                    continue
                found.append(entry.path)
                if missing.pop(entry.path, None) == entry.facts:
                    counters.mtime_hits += 1
                else:
                    counters.mtime_misses += 1
                    changed.append(entry.path)
            if len(found) > limit:
                raise TooManyFiles
            if self._stopped:
                raise Stopped
        if tops == WHOLE:
            self.counters = counters
        with self._lock:
            elsewhere = [p for p in self._others if not is_below(p, tops)]
            self._others = {p for p in found if p not in self._members}
            self._others.update(elsewhere)
        return Comparison(changed, list(missing))

    def load(self, files: Mapping[str, int | None]) -> None:
        """Set the files from the database, with their blobs."""
        with self._lock:
            self._members = {p: blob for p, blob in files.items() if blob is not None}
            self._others = files.keys() - self._members.keys()
            self._version += 1

    @property
    def is_usable(self) -> bool:
        """Whether the index can answer: it knows most files, if only as they were."""
        if self.status.phase is Phase.COMPLETE:
            return True
        return self.status.was_complete and 2 * len(self._others) < self.file_count

    @property
    def file_count(self) -> int:
        """The number of files, with and without searchable content."""
        return len(self._members) + len(self._others)

    def expect(self, paths: Iterable[str]) -> None:
        """Add files that were found and will be read."""
        with self._lock:
            self._others.update(p for p in paths if p not in self._members)

    def take(self, written: Written) -> bool:
        """Update a file that was written; returns False if it must be looked at again.

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
        # The rules may have changed while a worker had it.
        return self.rules.reason(written.path) is None

    def set_member(self, path: str, blob_id: int | None) -> None:
        """Set the blob of a file."""
        with self._lock:
            before = self._members.get(path)
            if blob_id is None:
                self._members.pop(path, None)
                self._others.add(path)
            else:
                self._members[path] = blob_id
                self._others.discard(path)
                if before not in (None, blob_id):
                    self._older.setdefault(path, before)
            self._version += 1

    def forget_older(self) -> None:
        """Note that the versions of all files are searchable; in the writer thread."""
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
        """Return the blob of a file, None without one."""
        return self._members.get(path)

    def searched_blobs(self, path: str) -> set[int]:
        """Return the blobs that a file is found by: the newest and perhaps an older."""
        found = (self._members.get(path), self._older.get(path))
        return {blob_id for blob_id in found if blob_id is not None}

    def paths(self) -> list[str]:
        """Return the paths of files that have a blob."""
        with self._lock:
            return list(self._members)

    def ids(self) -> frozenset[int]:
        """Return the blobs of all files, as they are searched."""
        return self.members()[1]

    def members(self) -> tuple[str, frozenset[int]]:
        """Return the blobs of all files, and a key for this set in caches."""
        with self._lock:
            version, ids = self._view
            if version != self._version:
                ids = frozenset((*self._members.values(), *self._older.values()))
                self._view = (self._version, ids)
            return f"w{self.id}.{self._version}", ids

    def read_steering(self) -> Steering:
        """Look again which files decide what is read, and return them."""
        self.steering = steering_of(self.root)
        return self.steering

    def stop(self) -> None:
        """Stop a walk that is running."""
        self._stopped = True


def is_unsettled(facts: FileFacts, now_ns: int | None = None) -> bool:
    """Tell whether a file was changed so recently that it must be read again.

    A change within the resolution of time stamps would leave the same facts. A time
    stamp in the future is ignored.
    """
    now = time.time_ns() if now_ns is None else now_ns
    stamps = [stamp for stamp in (facts.mtime_ns, facts.ctime_ns) if stamp <= now]
    return bool(stamps) and now - max(stamps) < _SETTLES_NS


def is_wanted(workspace: Workspace, path: str) -> bool:
    """Tell whether a change event about a path matters."""
    steering = workspace.steering
    if path in steering.rules or path in steering.commits:
        return True
    if Path(path).is_absolute() or not is_text(path):
        return False
    if path.rpartition("/")[2] in IGNORE_FILES:  # which may name themselves
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
