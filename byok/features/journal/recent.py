"""What the requests of a week tell: how upstreams answer, and which clients ask.

All functions raise CannotStart if the journal cannot be read.
"""

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from byok.core.error_table import error_rows
from byok.features.journal.entry import Moment
from byok.features.journal.reader import read_journal
from byok.features.journal.reading import HIGHEST
from byok.features.journal.rows import read_number, select_rows
from byok.features.journal.schema import FAMILY
from byok.storage.database import identity_of

_WINDOW = 7 * 86_400.0
_GROUPS = frozenset({"reach", "address", "keys", "limits"})  # of the upstream's own
_PREFIX = "upstream_"
_NEW = """SELECT upstream, model, outcome, error, started + seconds FROM request
    WHERE {0}id > ? AND {0}id <= ? AND started >= ? AND model <> ''
    AND outcome IN ('ok', 'failed') ORDER BY id"""
_CLIENTS = f"""SELECT {FAMILY}, max(started) FROM request
    WHERE {{0}}id > ? AND {{0}}id <= ? AND started >= ? AND client <> ''
    GROUP BY 1"""  # noqa: S608 - our own words


class UpstreamState(NamedTuple):
    """How an upstream has answered lately; times are in seconds since 1970.

    It `answers`, or fails with the `code`, `since` then; `last` is the latest request
    that says so, to that `model`.
    """

    answers: bool
    since: float
    last: float
    code: str = ""
    model: str = ""

    def follow(self, later: "UpstreamState") -> "UpstreamState":
        """Return the state after one more request."""
        if later.answers is not self.answers:
            return later
        return later._replace(since=self.since, last=max(self.last, later.last))


class _Ended(NamedTuple):
    upstream: str
    model: str
    outcome: str
    error: str
    ended: float


class _Seen(NamedTuple):
    family: str
    last: Moment


class RecentRequests:
    """Follows one journal, for any thread; what was read is not read again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: tuple[int, int] | None = None
        self._seen = 0
        self._known: dict[str, UpstreamState] = {}
        self._clients: dict[str, float] = {}
        self._lock = Lock()

    def upstreams(self, now: float) -> Mapping[str, UpstreamState]:
        """Return the states by the names of upstreams; unused ones are missing."""
        with self._lock:
            self._follow(now)
            return dict(self._known)

    def clients(self, now: float) -> Mapping[str, float]:
        """Return when each family of clients last asked, the latest first."""
        with self._lock:
            self._follow(now)
            latest = sorted(self._clients.items(), key=lambda one: -one[1])
            return dict(latest)

    def _follow(self, now: float) -> None:
        def follow(db: sqlite3.Connection) -> None:
            file = identity_of(self._path)
            last = read_number(db, HIGHEST, ())
            if self._file != file or last < self._seen:
                self._file, self._seen = file, 0
                self._known.clear()
                self._clients.clear()
            span = self._seen, last, now - _WINDOW
            # What is old is found by its time, what is new by its number.
            hint = "" if self._seen else "+"
            for row in select_rows(db, _Ended, _NEW.format(hint), span):
                self._add(row)
            for family, seen in select_rows(db, _Seen, _CLIENTS.format(hint), span):
                self._clients[family] = max(seen, self._clients.get(family, seen))
            self._seen = last

        read_journal(self._path, follow, None)

    def _add(self, row: _Ended) -> None:
        answers = row.outcome == "ok"
        if not answers and not _is_its_fault(row.error):
            return
        state = UpstreamState(answers, row.ended, row.ended, row.error, row.model)
        before = self._known.get(row.upstream)
        self._known[row.upstream] = before.follow(state) if before else state


def _is_its_fault(code: str) -> bool:
    row = error_rows().get(code)
    if row is None or not code.startswith(_PREFIX):
        return False
    return row.group in _GROUPS or code == "upstream_failed"
