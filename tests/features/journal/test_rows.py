"""What is no value of byok's never comes out of a row."""

import math
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from byok.features.journal.entry import MOST, JournalEntry, Moment
from byok.features.journal.rows import make_row, whole_row
from tests.fakes.journal_entries import entry, write_journal


class Kind(NamedTuple):
    """One field of each type."""

    text: str
    at: Moment
    number: int
    cost: float
    tokens: int | None
    first: float | None
    rest: tuple[str, ...] = ()


ROW = ("a", 1e9, 2.0, 0.5, None, None)


def test_sums_of_whole_numbers_become_whole() -> None:
    made = make_row(Kind, ROW)
    assert made == Kind("a", 1e9, 2, 0.5, None, None)
    assert type(made.number) is int
    assert make_row(Kind, ("", 1e9, 7, 3, 4.0, 5.5))[2:] == (7, 3, 4, 5.5, ())


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("client", b"\xff\x00"),
        ("conversation", b"c0ffee-1"),
        ("prompt", b""),
        ("started", "never"),
        ("started", 1e200),
        ("started", -1.0),
        ("seconds", math.inf),
        ("seconds", b"2.5"),
        ("first_byte", "soon"),
        ("input_tokens", MOST + 1),
        ("output_tokens", b"30"),
        ("cost", 1e100),
        ("cost", None),
        ("status", "ok"),
        ("status", -200),
        ("tool_calls", "view"),
        ("attempts", MOST),
    ],
)
def test_sql_knows_the_same_rows_as_damaged(
    tmp_path: Path, column: str, value: Any
) -> None:
    path = write_journal(tmp_path / "journal.db", [entry()])
    columns = ", ".join(JournalEntry._fields)
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"UPDATE request SET {column} = ?", (value,))
        row = db.execute(f"SELECT {columns} FROM request").fetchone()
        whole = db.execute(f"SELECT {columns} FROM request WHERE {whole_row()}")
        if whole.fetchone():
            assert make_row(JournalEntry, row, MOST) == entry()._replace(
                **{column: value}
            )
            return
        with pytest.raises(sqlite3.DatabaseError, match="byok wrote"):
            make_row(JournalEntry, row, MOST)
