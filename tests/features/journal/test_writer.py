"""The writer keeps up, keeps to its limits, and never blocks whoever adds."""

import logging
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from byok.features.journal.writer import STEP, JournalWriter
from tests.fakes.journal_entries import (
    NOW,
    QUICK,
    entry,
    opened_journal,
    rows_of,
    write_journal,
)
from tests.fakes.patience import PATIENCE

DAY = 86_400


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "journal.db"


def test_entries_are_written_in_their_order(path: Path) -> None:
    ids = [f"r{number}" for number in range(500)]
    limits = replace(QUICK, waiting=500)
    with closing(JournalWriter(path, str, limits)) as writer:
        for name in ids:
            writer.add(entry(request_id=name))
    assert rows_of(path, "request_id") == [(name,) for name in ids]
    assert writer.lost == 0


def count(path: Path) -> int:
    try:
        return len(rows_of(path))
    except sqlite3.OperationalError:  # its tables are being made
        return 0


def test_the_first_entry_is_written_before_others_are_gathered(path: Path) -> None:
    end = time.monotonic() + PATIENCE
    limits = replace(QUICK, gather=10 * PATIENCE)
    with closing(JournalWriter(path, str, limits)) as writer:
        writer.add(entry())
        while not count(path) and time.monotonic() < end:
            time.sleep(0.01)
        assert count(path) == 1


def test_a_full_queue_drops_what_comes_and_says_so_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.mkdir()
    limits = replace(QUICK, waiting=10)
    with (
        opened_journal(path) as other,
        closing(JournalWriter(path, str, limits)) as writer,
    ):
        other.execute("BEGIN IMMEDIATE")  # the writer waits for this
        for _ in range(100):
            writer.add(entry())
        assert 80 <= writer.lost <= 90
        other.execute("ROLLBACK")
    told = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert any("faster than" in text for text in told)
    assert f"{writer.lost} requests are missing in the journal" in told
    assert len(told) == 2
    assert len(rows_of(path)) == 100 - writer.lost


@pytest.mark.parametrize(
    "value",
    [
        "\x1b[31m\x07",
        "nul\x00nul",
        "\udcff\ud800",
        "‮abc",
        "'; DROP TABLE request; --",
        "=cmd|' /C calc'!A0",
        "漢字 🙂",
    ],
    ids=ascii,
)
def test_hostile_values_are_only_values(path: Path, value: str) -> None:
    hostile = entry(conversation=value, model_asked=value, model=value)
    write_journal(path, [hostile, entry()])
    stored = value.encode("utf-8", "replace").decode()
    rows = rows_of(path, "conversation, model_asked, model")
    assert rows[0] == (stored, stored, stored)
    assert len(rows) == 2


def test_secrets_are_not_written(path: Path) -> None:
    def redact(text: str) -> str:
        return text.replace("sk-secret", "[redacted]")

    writer = JournalWriter(path, redact, QUICK)
    leak = "byok:one:sk-secret"
    writer.add(entry(conversation=leak, model_asked=leak, model=leak, tool_calls=leak))
    writer.close()
    assert b"sk-secret" not in path.read_bytes()
    assert rows_of(path, "model_asked") == [("byok:one:[redacted]",)]


def test_old_entries_go_after_the_days_for_which_they_are_kept(path: Path) -> None:
    write_journal(path, [entry(started=NOW - day * DAY) for day in (91, 89, 1, 0)])
    writer = JournalWriter(path, str, QUICK, clock=lambda: NOW)
    writer.keep_days = 90
    wanted = [-89 * DAY, -DAY, 0, 1]
    with closing(writer):
        writer.add(entry(started=NOW + 1))
        while [row[0] - NOW for row in rows_of(path, "started")] != wanted:
            threading.Event().wait(0.01)


def test_tidying_lets_a_new_entry_go_first_and_goes_on_behind_it(path: Path) -> None:
    old = [entry(started=NOW - 91 * DAY) for _ in range(3 * STEP)]
    write_journal(path, [*old, entry(started=NOW - DAY)])
    tidied: list[list[tuple[str]]] = []
    again = threading.Event()

    def look() -> float:
        """Tell the time at the begin of each tidying, in the thread of the writer."""
        tidied.append(rows_of(path, "request_id"))
        if len(tidied) == 1:
            writer.add(entry(request_id="late"))
        else:
            again.set()
        return NOW

    writer = JournalWriter(path, str, QUICK, clock=look)
    writer.keep_days = 90
    with closing(writer):
        writer.add(entry(request_id="first"))
        assert again.wait(PATIENCE)
    before, behind = tidied
    assert (len(before), before[-1]) == (3 * STEP + 2, ("first",))
    assert (len(behind), behind[-1]) == (2 * STEP + 3, ("late",))


def test_an_entry_that_cannot_be_written_stops_no_other(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(JournalWriter(path, str, QUICK)) as writer:
        writer.add(entry(status=2**64))
        while writer.waiting:
            threading.Event().wait(0.01)
        writer.add(entry(conversation="later"))
    assert rows_of(path, "conversation") == [("later",)]
    assert writer.lost == 1
    assert "requests are not written to the journal" in caplog.text
    assert "Traceback" in caplog.text  # it is a bug, and can be found
