"""What is no value of byok's never comes out of a row."""

import math
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from byok.features.journal.entry import MOST, JournalEntry, Moment
from byok.features.journal.rows import make_row, select_rows, whole_row
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
    ("place", "value"),
    [
        (0, b"a"),
        (0, None),
        (0, 1),
        (1, 1e11),
        (1, -1.0),
        (2, None),
        (2, "7"),
        (2, -1),
        (3, math.inf),
        (3, b""),
        (4, -5),
        (4, "many"),
        (5, math.inf),
    ],
)
def test_a_value_that_byok_never_wrote_is_damage(place: int, value: object) -> None:
    row: list[object] = [*ROW]
    row[place] = value
    with pytest.raises(sqlite3.DatabaseError, match="byok wrote"):
        make_row(Kind, row)


def test_a_number_is_at_most_what_is_asked() -> None:
    make_row(Kind, ROW, most=2)
    with pytest.raises(sqlite3.DatabaseError, match="byok wrote"):
        make_row(Kind, ROW, most=1)


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


def test_rows_come_one_by_one() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        found = select_rows(
            db,
            Kind,
            "SELECT ?, 1, 2, 3, 4, 5 UNION SELECT x'', 1, 2, 3, 4, 5 ORDER BY 1",
            ("a",),
        )
        assert next(found) == Kind("a", 1, 2, 3, 4, 5)
        with pytest.raises(sqlite3.DatabaseError, match="a text"):
            next(found)
