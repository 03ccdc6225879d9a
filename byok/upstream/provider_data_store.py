"""The store of provider data by tool call: on disk, small, and only a help.

Entries are opaque bytes by key (`toolcalls/provider_data.py`). They survive a restart
of the daemon for 30 days without use, within 32 MiB. A file that is damaged or cannot
be written is a warning in the log: without it byok sends what the client kept.
"""

import asyncio
import logging
import os
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from byok.platform.damage import set_aside
from byok.platform.paths import make_private

_log = logging.getLogger(__name__)
_ROOM = 32 * 2**20  # bytes in the file
_RECENT = 8 * 2**20  # bytes in memory
_ENTRY = 100  # bytes of an entry besides its data
_DAY = 86_400
_KEPT_DAYS = 30
_MOST_ABSENT = 20_000
_AT_ONCE = 500
_BUSY_SECONDS = 2.0
_SCHEMA = """
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS call_data (
    key BLOB PRIMARY KEY, data BLOB NOT NULL, used INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS call_data_used ON call_data (used);
"""


class ProviderDataStore:
    """Keeps entries by key. One thread of its own reads and writes the file."""

    def __init__(
        self,
        path: Path,
        *,
        room: int = _ROOM,
        recent: int = _RECENT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._room = room
        self._recent_room = recent
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, "provider-data")
        self._recent: OrderedDict[bytes, bytes] = OrderedDict()
        self._recent_size = 0
        self._absent: dict[bytes, None] = {}  # keys that the file does not have
        self._db: sqlite3.Connection | None = None
        self._broken = self._told = self._is_closed = False

    def keep(self, entries: Mapping[bytes, bytes]) -> None:
        """Store entries; they are found at once, and written in the background."""
        if not entries:
            return
        for key, data in entries.items():
            self._absent.pop(key, None)
            self._remember(key, data)
        if not self._is_closed:
            self._thread.submit(self._write, dict(entries))

    async def find(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the entries of those keys that have one."""
        found: dict[bytes, bytes] = {}
        missing: list[bytes] = []
        for key in keys:
            if key in self._recent:
                self._recent.move_to_end(key)
                found[key] = self._recent[key]
            elif key not in self._absent:
                missing.append(key)
        if missing and not self._is_closed:
            loop = asyncio.get_running_loop()
            stored = await loop.run_in_executor(self._thread, self._read, missing)
            if len(self._absent) > _MOST_ABSENT:
                self._absent.clear()
            self._absent.update(dict.fromkeys(k for k in missing if k not in stored))
            for key, data in stored.items():
                self._remember(key, data)
            found |= stored
        return found

    def close(self) -> None:
        """Write what is left; later entries stay in memory. Blocks."""
        self._is_closed = True
        self._thread.submit(self._close_file)
        self._thread.shutdown()

    def _remember(self, key: bytes, data: bytes) -> None:
        if key in self._recent:
            self._recent_size -= _ENTRY + len(self._recent.pop(key))
        self._recent[key] = data
        self._recent_size += _ENTRY + len(data)
        while self._recent_size > self._recent_room:
            self._recent_size -= _ENTRY + len(self._recent.popitem(last=False)[1])

    # In the thread.

    def _read(self, keys: list[bytes]) -> dict[bytes, bytes]:
        return self._try(lambda db: self._select(db, keys)) or {}

    def _write(self, entries: Mapping[bytes, bytes]) -> None:
        self._try(lambda db: self._insert(db, entries))

    def _try(
        self, work: Callable[[sqlite3.Connection], dict[bytes, bytes] | None]
    ) -> dict[bytes, bytes] | None:
        """Work on the file; one that is no database or damaged is set aside once."""
        for may_replace in (True, False):
            if self._broken:
                return None
            try:
                self._db = self._db or self._open()
                with self._db:
                    return work(self._db)
            except sqlite3.OperationalError as error:  # locked, full, read-only
                self._warn(error)
                self._close_file()
                return None
            except OSError as error:
                self._warn(error)
                self._broken = True
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                # A message about damage may quote it, and not be UTF-8 then.
                self._close_file()
                self._broken = not (may_replace and self._set_aside(error))
        return None

    def _open(self) -> sqlite3.Connection:
        make_private(self._path.parent)
        flags = os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
        os.close(os.open(self._path, flags, 0o600))
        db = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, check_same_thread=False)
        db.executescript(_SCHEMA)
        return db

    def _set_aside(self, error: Exception) -> bool:
        try:
            set_aside(self._path, str(error))
        except OSError as failure:
            self._warn(failure)
            return False
        return True

    def _warn(self, error: Exception) -> None:
        """Log a failure, once a run."""
        level = logging.DEBUG if self._told else logging.WARNING
        _log.log(level, "reasoning is not kept on disk: %s", error)
        self._told = True

    def _close_file(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def _forget_old(self, db: sqlite3.Connection) -> None:
        old = int(self._clock()) - _KEPT_DAYS * _DAY
        db.execute("DELETE FROM call_data WHERE used < ?", (old,))

    def _select(self, db: sqlite3.Connection, keys: list[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        now = int(self._clock())
        self._forget_old(db)
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            rows = db.execute(
                f"SELECT key, data FROM call_data WHERE key IN ({marks})",  # noqa: S608
                some,
            )
            found.update((key, data) for key, data in rows if isinstance(data, bytes))
            db.execute(
                f"UPDATE call_data SET used = ? WHERE used < ? AND key IN ({marks})",  # noqa: S608
                [now, now - _DAY, *some],
            )
        return found

    def _insert(self, db: sqlite3.Connection, entries: Mapping[bytes, bytes]) -> None:
        now = int(self._clock())
        self._forget_old(db)
        db.executemany(
            "INSERT OR REPLACE INTO call_data VALUES (?, ?, ?)",
            [(key, data, now) for key, data in entries.items()],
        )
        all_sizes = "SELECT sum(length(data) + ?) FROM call_data"
        if (db.execute(all_sizes, (_ENTRY,)).fetchone()[0] or 0) <= self._room:
            return
        sizes = "SELECT key, length(data) + ? FROM call_data ORDER BY used DESC, key"
        size, excess = 0, list[tuple[bytes]]()
        for key, length in db.execute(sizes, (_ENTRY,)):
            size += length
            if size > self._room:
                excess.append((key,))
        db.executemany("DELETE FROM call_data WHERE key = ?", excess)
        # Steps through all of it: `execute` would free a single page.
        db.executescript("PRAGMA incremental_vacuum")
