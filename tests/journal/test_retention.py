"""Old requests go, then the oldest, in small steps; the file becomes smaller."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from byok.journal.file import open_journal
from byok.journal.retention import STEP, tidy
from tests.fakes.journal_entries import NOW, entry, write_journal

DAY = 86_400
NO_LIMIT = 2**60


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def count(db: sqlite3.Connection) -> int:
    number: int = db.execute("SELECT count(*) FROM request").fetchone()[0]
    return number


def finish(
    db: sqlite3.Connection, *, before: float = 0, most_bytes: int = NO_LIMIT
) -> Iterator[int]:
    """Tidy to the end; give how many requests are left after each step."""
    more = True
    while more:
        more = tidy(db, before=before, most_bytes=most_bytes)
        yield count(db)


def test_requests_that_are_too_old_go_whatever_their_order(path: Path) -> None:
    write_journal(path, [entry(started=NOW + day * DAY) for day in (-3, -1, -2, 0)])
    with closing(open_journal(path)) as db:
        assert not tidy(db, before=NOW - 1.5 * DAY, most_bytes=NO_LIMIT)
        left = db.execute("SELECT started FROM request ORDER BY id").fetchall()
    assert left == [(NOW - DAY,), (NOW,)]


def test_a_step_is_small(path: Path) -> None:
    write_journal(path, [entry(started=NOW) for _ in range(3 * STEP + 7)])
    with closing(open_journal(path)) as db:
        left = [*finish(db, before=NOW + 1)]
    assert left[:4] == [2 * STEP + 7, STEP + 7, 7, 0]


def test_the_oldest_go_where_the_journal_is_too_large(path: Path) -> None:
    entries = [entry(request_id=str(n), conversation="c" * 200) for n in range(10_000)]
    write_journal(path, entries)
    full = path.stat().st_size
    limit = full // 4
    with closing(open_journal(path)) as db:
        left = [*finish(db, most_bytes=limit)]
        newest = db.execute("SELECT max(id), min(id) FROM request").fetchone()
    assert newest == (10_000, 10_001 - left[-1])
    assert 0 < left[-1] < 3000
    assert path.stat().st_size < full / 2


def test_there_is_nothing_to_do_in_an_empty_journal(path: Path) -> None:
    with closing(open_journal(path)) as db:
        assert [*finish(db, before=NOW, most_bytes=0)] == [0]
