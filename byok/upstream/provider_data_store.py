"""The store of provider data by tool call: on disk, small, and only a help.

Entries are opaque bytes by key (`upstream/toolcalls/provider_data.py`). They survive a
restart of the daemon for 30 days without use, within 32 MiB. A file that is damaged or
cannot be written is a warning in the log: without it byok sends what the client kept.
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

_ROOM = 32 * 2**20  # bytes in the file
_RECENT = 8 * 2**20  # bytes in memory
_ENTRY = 100  # bytes of an entry besides its data
_DAY = 86_400
_KEPT_DAYS = 30
_MOST_ABSENT = 20_000
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
    """Keeps entries by key. One thread of its own reads and writes the file.

    No failure asks for them: what the client dropped is put into each request, before
    the conversation is kept within its window, as it takes room there.
    """

    def __init__(
        self,
        path: Path,
        *,
        room: int = _ROOM,
        recent: int = _RECENT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        failure = "reasoning is not kept on disk"
        self._file = HelpDatabase(path, PROVIDER_DATA, failure)
        self._room = room
        self._clock = clock
        self._worker = Worker("provider-data")
        self._recent = BoundedMap[bytes, bytes](
            recent, lambda _, data: _ENTRY + len(data)
        )
        # Keys that the file does not have.
        self._absent = BoundedMap[bytes, bool](_MOST_ABSENT)

    def keep(self, entries: Mapping[bytes, bytes]) -> None:
        """Store entries; they are found at once, and written in the background."""
        if not entries:
            return
        for key, data in entries.items():
            self._absent.pop(key)
            self._recent[key] = data
        write = partial(self._insert, dict(entries))
        self._worker.offer(partial(self._file.use, write))

    async def find(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the entries of those keys that have one."""
        found: dict[bytes, bytes] = {}
        missing: list[bytes] = []
        for key in keys:
            if (data := self._recent.get(key)) is not None:
                found[key] = data
            elif key not in self._absent:
                missing.append(key)
        if missing and not self._worker.is_closed:
            read = partial(self._file.use, partial(self._select, missing))
            stored = await asyncio.wrap_future(self._worker.run(read)) or {}
            for key in missing:
                if key in stored:
                    self._recent[key] = stored[key]
                else:
                    self._absent[key] = True
            found |= stored
        return found

    async def prepare(self, plan: Plan) -> Plan:
        """Restore what came with the tool calls of the conversation."""
        request = plan.request
        if plan.restored or not has_calls(request):
            return plan
        origin = Origin("", plan.name, plan.model)
        raw = await self.find(keys_of(request, origin))
        found = {key: data for key in raw if (data := read_call_data(raw[key]))}
        return plan.having(restored=restore_call_data(request, origin, found))

    def close(self) -> None:
        """Write what is left; later entries stay in memory. Blocks."""
        self._worker.close(self._file.close)

    # In the thread.

    def _forget_old(self, db: sqlite3.Connection) -> None:
        old = expired_before(db, "call_data", "used", self._clock(), _KEPT_DAYS)
        db.execute("DELETE FROM call_data WHERE used < ?", (old,))

    def _select(self, keys: list[bytes], db: sqlite3.Connection) -> dict[bytes, bytes]:
        now = int(self._clock())
        rows = "SELECT key, data FROM call_data WHERE key IN (?)"
        with transaction(db):
            self._forget_old(db)
            stored = select_in(db, rows, keys)
            found = {key: data for key, data in stored if isinstance(data, bytes)}
            db.executemany(
                "UPDATE call_data SET used = ? WHERE used < ? AND key = ?",
                [(now, now - _DAY, key) for key in found],
            )
        return found

    def _insert(self, entries: Mapping[bytes, bytes], db: sqlite3.Connection) -> None:
        now = int(self._clock())
        with transaction(db):
            self._forget_old(db)
            db.executemany(
                "INSERT OR REPLACE INTO call_data VALUES (?, ?, ?)",
                [(key, data, now) for key, data in entries.items()],
            )
            is_smaller = self._drop_excess(db)
        if is_smaller:
            # Steps through all of it: `execute` would free a single page.
            db.executescript("PRAGMA incremental_vacuum")

    def _drop_excess(self, db: sqlite3.Connection) -> bool:
        """Delete the least recently used entries beyond the room; tell if any went."""
        all_sizes = "SELECT sum(length(data) + ?) FROM call_data"
        if (db.execute(all_sizes, (_ENTRY,)).fetchone()[0] or 0) <= self._room:
            return False
        sizes = "SELECT key, length(data) + ? FROM call_data ORDER BY used DESC, key"
        size, excess = 0, list[tuple[bytes]]()
        for key, length in db.execute(sizes, (_ENTRY,)):
            size += length
            if size > self._room:
                excess.append((key,))
        db.executemany("DELETE FROM call_data WHERE key = ?", excess)
        return True
