"""Journals with entries, and what is written in one."""

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from byok.core.platform.paths import Paths
from byok.features.journal.entry import JournalEntry
from byok.features.journal.schema import JOURNAL
from byok.features.journal.writer import JournalKeeper, WriterLimits, salvage_rows
from byok.storage.database import open_or_begin_anew
from tests.fakes.feature_supplies import make_site

NOW = 1_767_268_800.0  # noon of a day in January, UTC
# What version 1 of byok's journal wrote, word by word.
VERSION_1 = f"""
    PRAGMA auto_vacuum = INCREMENTAL;
    PRAGMA journal_mode = WAL;
    CREATE TABLE request (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        request_id TEXT NOT NULL,
        started REAL NOT NULL,
        seconds REAL NOT NULL,
        client TEXT NOT NULL,
        conversation TEXT NOT NULL,
        endpoint TEXT NOT NULL,
        purpose TEXT NOT NULL,
        model_asked TEXT NOT NULL,
        model TEXT NOT NULL,
        upstream TEXT NOT NULL,
        attempts INTEGER NOT NULL,
        first_byte REAL,
        input_tokens INTEGER,
        output_tokens INTEGER,
        cache_read_tokens INTEGER,
        cache_written_tokens INTEGER,
        cost REAL,
        repairs INTEGER NOT NULL,
        dropped_calls INTEGER NOT NULL,
        notices INTEGER NOT NULL,
        prompt TEXT NOT NULL,
        status INTEGER NOT NULL,
        outcome TEXT NOT NULL,
        error TEXT NOT NULL,
        error_class TEXT NOT NULL
    );
    CREATE INDEX request_started ON request (started);
    CREATE INDEX request_conversation ON request (conversation, started)
        WHERE conversation <> '';
    PRAGMA application_id = {0x62796F6B};
    PRAGMA user_version = 1;
"""
# What is not known of a request that was cut off.
_COUNTS = "input_tokens output_tokens cache_read_tokens cache_written_tokens"
UNKNOWN: dict[str, Any] = dict.fromkeys(["cost", *_COUNTS.split()])
QUICK = WriterLimits(waiting=100_000, gather=0.0, pause=0.0, last_words=30.0)


def entry(**fields: Any) -> JournalEntry:
    """A chat that went well, with these differences."""
    usual = JournalEntry(
        request_id="r1",
        started=NOW,
        seconds=2.5,
        client="vscode/0.600.1",
        conversation="c0ffee-1",
        endpoint="/chat-stream",
        purpose="chat",
        model_asked="byok:one:m",
        model="m",
        upstream="one",
        attempts=1,
        first_byte=0.4,
        input_tokens=1200,
        output_tokens=30,
        cache_read_tokens=1000,
        cache_written_tokens=0,
        cost=0.25,
        repairs=0,
        dropped_calls=0,
        notices=0,
        prompt="chat@1a2b3c4d",
        status=200,
        outcome="ok",
        error="",
        error_class="",
        tool_calls="",
        loop="",
        prompt_change="",
        folder="shop",
        retried="",
    )
    return usual._replace(**fields)


def make_keeper(
    path: Path,
    limits: WriterLimits = QUICK,
    *,
    secret: str = "",
    clock: Callable[[], float] = time.time,
) -> JournalKeeper:
    """Return what writes a journal in the daemon."""
    paths = Paths(path.parent, path.parent, path.parent)
    paths.journal = path
    site = make_site(clock, paths)
    site.redactor.add(secret)
    return JournalKeeper(site, limits)


def write_journal(path: Path, entries: Iterable[JournalEntry]) -> Path:
    """Write entries as the daemon does, whatever their age."""
    writer = make_keeper(path)
    for one in entries:
        writer.add(one)
    writer.close()
    assert writer.lost == 0
    return path


@contextmanager
def opened_journal(path: Path) -> Iterator[sqlite3.Connection]:
    """Lend the connection of the journal's writer."""
    database = open_or_begin_anew(path, JOURNAL, salvage_rows)
    with closing(database):
        yield database.connection


def write_version_1(path: Path, entries: Iterable[JournalEntry]) -> Path:
    """Write a journal as version 1 of it was; newer columns are not kept."""
    columns = JournalEntry._fields[: JournalEntry._fields.index("tool_calls")]
    marks = ", ".join("?" * len(columns))
    with closing(sqlite3.connect(path)) as db:
        db.executescript(VERSION_1)
        db.executemany(
            f"INSERT INTO request ({', '.join(columns)}) VALUES ({marks})",
            [entry[: len(columns)] for entry in entries],
        )
        db.commit()
    return path


def rows_of(path: Path, columns: str = "*") -> list[tuple[Any, ...]]:
    """Return what is written, by a connection that knows nothing of byok."""
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return db.execute(f"SELECT {columns} FROM request ORDER BY id").fetchall()
