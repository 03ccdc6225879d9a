"""A small store on disk for the provider data of tool calls.

Entries are opaque bytes by key (`upstream/toolcalls/provider_data.py`). They survive
restarts of the daemon, up to 30 days without use and 32 MiB in all. A file that is
damaged or cannot be written only causes a warning in the log: without it byok sends the
data that the client kept.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from byok.core.bounded import BoundedMap
from byok.core.chat import Origin
from byok.storage.database import HelpDatabase, expired_before, select_in, transaction
from byok.storage.kind import DatabaseKind, Policy
from byok.storage.worker import Worker
from byok.upstream.base import Plan, Recovery
from byok.upstream.toolcalls.provider_data import (
    has_calls,
    keys_of,
    read_call_data,
    restore_call_data,
)

_MAX_FILE_BYTES = 32 * 2**20
_MAX_MEMORY_BYTES = 8 * 2**20
_ENTRY_BYTES = 100  # of an entry besides its data
_DAY = 86_400  # seconds
_MAX_AGE_DAYS = 30
_MAX_ABSENT_KEYS = 20_000
PROVIDER_DATA = DatabaseKind(
    """CREATE TABLE call_data (
    key BLOB PRIMARY KEY, data BLOB NOT NULL, used INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX call_data_used ON call_data (used)""",
    version=0,
    policy=Policy.HELP,
    pragmas=("busy_timeout = 2000", "synchronous = NORMAL"),
    shrinks=True,
)


class ProviderDataStore(Recovery):
    """Stores entries by key. A thread of its own reads and writes the file.

    As a recovery it only prepares plans: it restores the data that the client dropped,
    before the conversation is shortened to its window, because the data take space.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int = _MAX_FILE_BYTES,
        recent: int = _MAX_MEMORY_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        failure = "reasoning is not kept on disk"
        self._file = HelpDatabase(path, PROVIDER_DATA, failure)
        self._max_bytes = max_bytes
        self._clock = clock
        self._worker = Worker("provider-data")
        self._recent = BoundedMap[bytes, bytes](
            recent, lambda _, data: _ENTRY_BYTES + len(data)
        )
        # Keys that the file does not have.
        self._absent = BoundedMap[bytes, bool](_MAX_ABSENT_KEYS)

    def keep(self, entries: Mapping[bytes, bytes]) -> None:
        """Store entries; `find` returns them at once, the file is written later."""
        if not entries:
            return
        for key, data in entries.items():
            self._absent.pop(key)
            self._recent[key] = data
        write = partial(self._insert, dict(entries))
        self._worker.offer(partial(self._file.use, write))

    async def find(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the entries of those keys that have one."""
        entries: dict[bytes, bytes] = {}
        unknown: list[bytes] = []
        for key in keys:
            if (data := self._recent.get(key)) is not None:
                entries[key] = data
            elif key not in self._absent:
                unknown.append(key)
        if unknown and not self._worker.is_closed:
            read = partial(self._file.use, partial(self._select, unknown))
            stored = await asyncio.wrap_future(self._worker.run(read)) or {}
            for key in unknown:
                if key in stored:
                    self._recent[key] = stored[key]
                else:
                    self._absent[key] = True
            entries |= stored
        return entries

    async def prepare(self, plan: Plan) -> Plan:
        """Restore the provider data of the conversation's tool calls."""
        request = plan.request
        if plan.restored or not has_calls(request):
            return plan
        origin = Origin("", plan.name, plan.model)
        raw = await self.find(keys_of(request, origin))
        data_by_key = {key: data for key in raw if (data := read_call_data(raw[key]))}
        return plan.having(restored=restore_call_data(request, origin, data_by_key))

    def close(self) -> None:
        """Write pending entries; later ones stay in memory only. Blocks."""
        self._worker.close(self._file.close)

    # ---- In the thread

    def _delete_expired(self, db: sqlite3.Connection) -> None:
        limit = expired_before(db, "call_data", "used", self._clock(), _MAX_AGE_DAYS)
        db.execute("DELETE FROM call_data WHERE used < ?", (limit,))

    def _select(self, keys: list[bytes], db: sqlite3.Connection) -> dict[bytes, bytes]:
        now = int(self._clock())
        query = "SELECT key, data FROM call_data WHERE key IN (?)"
        with transaction(db):
            self._delete_expired(db)
            rows = select_in(db, query, keys)
            entries = {key: data for key, data in rows if isinstance(data, bytes)}
            db.executemany(
                "UPDATE call_data SET used = ? WHERE used < ? AND key = ?",
                [(now, now - _DAY, key) for key in entries],
            )
        return entries

    def _insert(self, entries: Mapping[bytes, bytes], db: sqlite3.Connection) -> None:
        now = int(self._clock())
        with transaction(db):
            self._delete_expired(db)
            db.executemany(
                "INSERT OR REPLACE INTO call_data VALUES (?, ?, ?)",
                [(key, data, now) for key, data in entries.items()],
            )
            has_deleted = self._delete_excess(db)
        if has_deleted:
            # `executescript` frees all unused pages: `execute` would free only one.
            db.executescript("PRAGMA incremental_vacuum")

    def _delete_excess(self, db: sqlite3.Connection) -> bool:
        """Delete the least recently used entries beyond the limit, if there are any."""
        total = "SELECT sum(length(data) + ?) FROM call_data"
        size = db.execute(total, (_ENTRY_BYTES,)).fetchone()[0] or 0
        if size <= self._max_bytes:
            return False
        sizes = "SELECT key, length(data) + ? FROM call_data ORDER BY used DESC, key"
        size, excess = 0, list[tuple[bytes]]()
        for key, length in db.execute(sizes, (_ENTRY_BYTES,)):
            size += length
            if size > self._max_bytes:
                excess.append((key,))
        db.executemany("DELETE FROM call_data WHERE key = ?", excess)
        return True
