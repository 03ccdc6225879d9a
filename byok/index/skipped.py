"""Which files of a workspace are not searchable, and why: a walk made for the question.

What a rule or its kind leaves out is only counted by the walks that keep the index in
step, so a list needs a walk of its own. What was read and is no text stands in the
database.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from byok.index.files.reading import Unreadable
from byok.index.files.scan import Counters, walk
from byok.index.store.store import Store
from byok.index.types import Skipped, SkipReason
from byok.index.workspace.workspace import Workspace

_SECONDS = 4.0
# Files, and those that were found to be a version that is known. As one query with an
# outer join they take three times as long (200,000 files: 0.5 s).
_STORED = (
    "SELECT path, reason FROM file WHERE workspace_id = ? AND reason IS NOT NULL "
    "ORDER BY path",
    "SELECT f.path, b.reason FROM blob b CROSS JOIN file f ON f.blob_id = b.id "
    "WHERE b.reason IS NOT NULL AND f.workspace_id = ? AND f.reason IS NULL "
    "ORDER BY f.path",
)


class SkippedFiles(NamedTuple):
    """How many there are for each reason, and some of them.

    A folder that is left out counts as one, and its path ends in `/`. `whole` is False
    where the walk did not come to its end.
    """

    counts: Mapping[SkipReason, int]
    files: list[Skipped]
    whole: bool


def find_skipped(
    workspace: Workspace,
    store: Store,
    *,
    reason: SkipReason | None = None,
    offset: int = 0,
    limit: int = 100,
    seconds: float = _SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> SkippedFiles:
    """Return what is left out, of one reason or of all; blocks for up to `seconds`.

    `files` are `limit` of them, after the first `offset`.
    """
    counts: Counter[SkipReason] = Counter()
    files: list[Skipped] = []
    place = 0
    steps = _Steps(workspace, store, clock() + seconds, clock)
    for found in steps:
        counts[found.reason] += 1
        if reason in (None, found.reason):
            if offset <= place < offset + limit:
                files.append(found)
            place += 1
    return SkippedFiles(counts, files, steps.whole)


class _Steps:
    """Gives every file that is left out: those of the database, then those found."""

    def __init__(
        self,
        workspace: Workspace,
        store: Store,
        until: float,
        clock: Callable[[], float],
    ) -> None:
        self._workspace = workspace
        self._store = store
        self._until = until
        self._clock = clock
        self.whole = False

    def __iter__(self) -> Iterator[Skipped]:
        for query in _STORED:
            with self._store.reading() as db:
                rows = db.execute(query, (self._workspace.id,)).fetchall()
            for path, reason in rows:
                yield Skipped(path, SkipReason(reason))
        try:
            yield from self._walk()
        except Unreadable:
            return  # the folder is gone; the status of the workspace says so

    def _walk(self) -> Iterator[Skipped]:
        space = self._workspace
        for batch in walk(space.root, space.rules, Counters()):
            if self._clock() > self._until:
                return
            for entry in batch:
                if isinstance(entry, Skipped):
                    yield entry
        self.whole = True
