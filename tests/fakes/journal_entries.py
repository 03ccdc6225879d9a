"""Journals with entries, and what is written in one."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from byok.journal.entry import JournalEntry
from byok.journal.writer import JournalWriter, WriterLimits

NOW = 1_767_268_800.0  # noon of a day in January, UTC
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
    )
    return usual._replace(**fields)


def write_journal(path: Path, entries: Iterable[JournalEntry]) -> Path:
    """Write entries as the daemon does, whatever their age."""
    writer = JournalWriter(path, str, QUICK)
    for one in entries:
        writer.add(one)
    writer.close()
    assert writer.lost == 0
    return path


def rows_of(path: Path, columns: str = "*") -> list[tuple[Any, ...]]:
    """Return what is written, by a connection that knows nothing of byok."""
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return db.execute(f"SELECT {columns} FROM request ORDER BY id").fetchall()
