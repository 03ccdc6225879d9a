"""The state of upstreams and the last use of clients, by the requests of a week.

All functions raise CannotStart if the journal cannot be read.
"""

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from byok.core.error_table import error_rows
from byok.features.journal.entry import Moment
from byok.features.journal.reader import read_journal, read_number, select_rows
from byok.features.journal.requests import HIGHEST
from byok.features.journal.schema import FAMILY
from byok.storage.database import identity_of

_WINDOW = 7 * 86_400.0  # seconds
_UPSTREAM_GROUPS = frozenset({"reach", "address", "keys", "limits"})  # of errors
_PREFIX = "upstream_"
_NEW = """SELECT upstream, model, outcome, error, started + seconds FROM request
    WHERE {0}id > ? AND {0}id <= ? AND started >= ? AND model <> ''
    AND outcome IN ('ok', 'failed') ORDER BY id"""
_CLIENTS = f"""SELECT {FAMILY}, max(started) FROM request
    WHERE {{0}}id > ? AND {{0}}id <= ? AND started >= ? AND client <> ''
    GROUP BY 1"""  # noqa: S608 - our own words


class UpstreamState(NamedTuple):
    """Whether an upstream `answers`, or fails with the `code`.

    Times are in seconds since 1970. The state exists `since` a first request, and was
    `last` confirmed by one to the `model`.
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


class _LastUse(NamedTuple):
    family: str
    last: Moment


class RecentRequests:
    """Reads new requests of one journal, each once; its methods are thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: tuple[int, int] | None = None
        self._last = 0  # the number of the last request that was read
        self._upstreams: dict[str, UpstreamState] = {}
        self._clients: dict[str, float] = {}
        self._lock = Lock()

    def upstreams(self, now: float) -> Mapping[str, UpstreamState]:
        """Return the states by the names of upstreams; unused ones are missing."""
        with self._lock:
            self._update(now)
            return dict(self._upstreams)

    def clients(self, now: float) -> Mapping[str, float]:
        """Return when each family of clients last asked, the latest first."""
        with self._lock:
            self._update(now)
            latest = sorted(self._clients.items(), key=lambda item: -item[1])
            return dict(latest)

    def _update(self, now: float) -> None:
        def read_new(db: sqlite3.Connection) -> None:
            file = identity_of(self._path)
            last = read_number(db, HIGHEST, ())
            if self._file != file or last < self._last:
                self._file, self._last = file, 0
                self._upstreams.clear()
                self._clients.clear()
            span = self._last, last, now - _WINDOW
            # The first time rows are selected by the index of times, later by number.
            hint = "" if self._last else "+"
            for row in select_rows(db, _Ended, _NEW.format(hint), span):
                self._add(row)
            for family, used in select_rows(db, _LastUse, _CLIENTS.format(hint), span):
                self._clients[family] = max(used, self._clients.get(family, used))
            self._last = last

        read_journal(self._path, read_new, None)

    def _add(self, row: _Ended) -> None:
        answers = row.outcome == "ok"
        if not answers and not _is_upstream_fault(row.error):
            return
        state = UpstreamState(answers, row.ended, row.ended, row.error, row.model)
        earlier = self._upstreams.get(row.upstream)
        self._upstreams[row.upstream] = earlier.follow(state) if earlier else state


def _is_upstream_fault(code: str) -> bool:
    row = error_rows().get(code)
    if row is None or not code.startswith(_PREFIX):
        return False
    return row.group in _UPSTREAM_GROUPS or code == "upstream_failed"
