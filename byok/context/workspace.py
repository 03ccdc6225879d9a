"""One folder that the user declared: what is in it, how far indexing it has come."""

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from byok.context.batches import Written
from byok.context.ignore import EXCLUDE, IGNORE_FILES, Rules
from byok.context.lexical import View
from byok.context.scan import Counters, walk
from byok.context.types import Facts, Found, Phase, SkipReason

# Whatever changes within this time after a file was read may have the same time stamp.
_SETTLES_NS = 2_000_000_000
_GIT_MOVES = (".git/HEAD", EXCLUDE)
_GIT_LOG = ".git/logs/HEAD"


class TooManyFiles(Exception):
    """The walk found more files than the user's limit."""


class Stopped(Exception):
    """The walk was broken off."""


class Comparison(NamedTuple):
    """What a walk found that differs from what was known."""

    found: int
    changed: list[str]
    gone: list[str]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a workspace is; `percentage` of the files that were to be read."""

    root: str
    phase: Phase
    percentage: float
    files_tracked: int
    files_processed: int


class Workspace:
    """A declared folder; its members change in the writer thread, under a lock.

    `label` stands before its paths where several workspaces answer together.
    """

    def __init__(self, workspace_id: int, root: Path, rules: Rules) -> None:
        self.id = workspace_id
        self.root = root
        self.label = root.name
        self.rules = rules
        self.counters = Counters()
        self.phase = Phase.SCANNING
        self.built = False  # whether it was complete once, so that answers may use it
        self.trouble = ""
        self.unwatched = ""
        self.stopped = False
        self.tracked = 0
        self.waiting = 0
        self.queued = 0
        self._members: dict[str, int] = {}
        self._lock = threading.Lock()
        self._version = 0
        self._view: tuple[int, frozenset[int]] = (0, frozenset())

    def compare(self, known: Mapping[str, Facts], *, limit: int) -> Comparison:
        """Walk the folder; blocks for as long as that takes.

        Raises:
            TooManyFiles: more than `limit` files would be indexed.
            Unreadable: the folder is gone.
            Stopped: nobody waits for it any more.
        """
        counters = Counters()
        missing = dict(known)
        changed: list[str] = []
        found = 0
        for batch in walk(self.root, self.rules, counters):
            for entry in batch:
                if not isinstance(entry, Found):
                    continue
                found += 1
                if missing.pop(entry.path, None) == entry.facts:
                    counters.mtime_hits += 1
                else:
                    counters.mtime_misses += 1
                    changed.append(entry.path)
            if found > limit:
                raise TooManyFiles
            if self.stopped:
                raise Stopped
        self.counters = counters
        return Comparison(found, changed, list(missing))

    def load(self, members: Mapping[str, int]) -> None:
        """Take over what the database knows."""
        with self._lock:
            self._members = dict(members)
            self._version += 1

    def take(self, written: Written) -> bool:
        """Note what became of a file; False: it needs a second look.

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
        """Note which version a file has now."""
        with self._lock:
            if blob_id is None:
                self._members.pop(path, None)
            else:
                self._members[path] = blob_id
            self._version += 1

    def drop_members(self, paths: Iterable[str]) -> None:
        """Note that files are gone."""
        with self._lock:
            for path in paths:
                self._members.pop(path, None)
            self._version += 1

    def members_below(self, path: str) -> list[str]:
        """Return a file, or the files of a folder, that are known."""
        prefix = f"{path}/"
        with self._lock:
            return [
                name
                for name in self._members
                if name == path or name.startswith(prefix)
            ]

    def blob_of(self, path: str) -> int | None:
        """Return the version that a file has, if it has one."""
        return self._members.get(path)

    def paths(self) -> list[str]:
        """Return the files that have a version."""
        with self._lock:
            return list(self._members)

    def ids(self) -> frozenset[int]:
        """Return the blobs of all files."""
        return self.members()[1]

    def members(self) -> tuple[str, frozenset[int]]:
        """Return the blobs of all files, and a name for just this set."""
        with self._lock:
            version, ids = self._view
            if version != self._version:
                ids = frozenset(self._members.values())
                self._view = (self._version, ids)
            return f"w{self.id}.{self._version}", ids

    @property
    def note(self) -> str:
        """Say what users should know of it, "" if nothing."""
        return "; ".join(filter(None, (self.trouble, self.unwatched)))

    @property
    def progress(self) -> Progress:
        """Say how far it is."""
        done = self.queued - self.waiting
        share = 100.0 * done / self.queued if self.queued else 100.0
        if self.phase is Phase.SCANNING and not self.built:
            share = 0.0
        return Progress(str(self.root), self.phase, round(share, 1), self.tracked, done)


def is_unsettled(facts: Facts, now_ns: int | None = None) -> bool:
    """Tell whether a later change could leave these very facts: read it once more.

    A time stamp in the future says nothing; then the change of the entry counts.
    """
    now = time.time_ns() if now_ns is None else now_ns
    stamps = [stamp for stamp in (facts.mtime_ns, facts.ctime_ns) if stamp <= now]
    return bool(stamps) and now - max(stamps) < _SETTLES_NS


def changes_rules(path: str) -> bool:
    """Tell whether a changed path may change what else is indexed."""
    return path.rpartition("/")[2] in IGNORE_FILES or path in _GIT_MOVES


def is_commit(path: str) -> bool:
    """Tell whether a changed path says that git has something new."""
    return path in (_GIT_LOG, *_GIT_MOVES)


def is_wanted(rules: Rules, path: str) -> bool:
    """Tell whether an event about a path matters."""
    if changes_rules(path) or is_commit(path):
        return True
    return rules.reason(path) is None


def total_view(workspaces: Iterable[Workspace], chunks: int) -> View:
    """Return the view of several workspaces together."""
    members = [workspace.members() for workspace in workspaces]
    if len(members) == 1:
        [(key, ids)] = members
        return View(key, ids, chunks)
    ids = frozenset().union(*(ids for _, ids in members))
    return View("+".join(key for key, _ in members), ids, chunks)
