"""Damage in a journal keeps no whole request from being shown, and is told."""

import logging
import math
import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec import to_builtins

from byok.core.errors import CannotStart
from byok.core.wire.json_lines import encode_line
from byok.features.cost import no_price
from byok.features.journal import reader
from byok.features.journal.cache import find_expired, weigh_cache
from byok.features.journal.conversations import (
    ConversationQuery,
    ConversationReader,
    find_dearest,
    latest_conversations,
    sum_requests,
)
from byok.features.journal.entry import MOST, JournalEntry, Moment
from byok.features.journal.problems import find_mended, weigh_errors
from byok.features.journal.reader import WHOLE_ROW, count_damaged, make_row
from byok.features.journal.recent import RecentRequests
from byok.features.journal.requests import (
    LogFilter,
    entries_before,
    entries_since,
    highest_number,
    last_entries,
)
from byok.features.journal.usage import (
    GROUPS,
    SeriesReader,
    Step,
    sum_conversation,
    sum_period,
    sum_usage,
)
from byok.features.journal.writer import check_rows, journal_file
from byok.storage.database import open_unchanged
from tests.fakes.journal_entries import NOW, entry, write_journal, write_version_1

CHAT = "c0ffee-1"
HOURS = 3
ENTRIES = [
    entry(
        request_id=str(number),
        started=NOW + 60 * number,
        conversation=CHAT if number % 2 else "other",
        outcome="failed" if number % 5 == 0 else "ok",
        error="upstream_auth" if number % 5 == 0 else "",
        repairs=number % 3,
        client="sdk" if number % 4 else "vscode/0.600.1",
    )
    for number in range(60)
]


def series(path: Path, by: str) -> Any:
    read = SeriesReader(path).read(NOW, NOW + HOURS * 3600, Step.HOUR, by)
    return [bucket.total.requests for bucket in read.buckets], read.names


def usage(path: Path) -> Any:
    return [row for by in GROUPS for row in sum_usage(path, by, NOW)]


READERS: dict[str, Callable[[Path], Any]] = {
    "last": lambda path: last_entries(path, 99),
    "since": lambda path: entries_since(path, 3, 99),
    "before": lambda path: entries_before(path, 50, 99),
    "begin": lambda path: last_entries(path, 99, LogFilter(conversation="c0")),
    "number": highest_number,
    "conversations": lambda path: latest_conversations(path, 9),
    "found": lambda path: ConversationReader(path).read(ConversationQuery(), 0, 9),
    "weighed": lambda path: to_builtins(weigh_errors(path, NOW, NOW + 9999, {"one"})),
    "upstreams": lambda path: RecentRequests(path).upstreams(NOW),
    "dearest": lambda path: find_dearest(path, CHAT),
    "cache": lambda path: weigh_cache(path, CHAT, no_price),
    "expired": lambda path: find_expired(path, [CHAT], no_price),
    "clients seen": lambda path: RecentRequests(path).clients(NOW),
    "today": lambda path: SeriesReader(path).read_day(NOW + 9999),
    "conversation": lambda path: sum_requests(path, CHAT),
    "mended": lambda path: find_mended(path, NOW),
    "models": lambda path: series(path, "model"),
    "clients": lambda path: series(path, "client"),
    "purposes": lambda path: series(path, "purpose"),
    "usage": usage,
    "day": lambda path: sum_period(path, NOW, NOW + 99_999),
    "spent": lambda path: sum_conversation(path, CHAT),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_journal(tmp_path / "journal.db", ENTRIES)


def change(path: Path, columns: str, where: str = "id = 8") -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE request SET {columns} WHERE {where}")


def page_of(path: Path, name: str) -> tuple[int, int]:
    """Return where the first page of a table or an index begins and ends."""
    with closing(sqlite3.connect(path)) as db:
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        (number,) = db.execute(query, (name,)).fetchone()
    return (number - 1) * 4096, number * 4096


def spoil(path: Path, name: str) -> None:
    begin, end = page_of(path, name)
    content = bytearray(path.read_bytes())
    content[begin:end] = b"\xff" * (end - begin)
    path.write_bytes(content)


def without(path: Path, number: int) -> dict[str, Any]:
    """Return what the readers tell of a journal without one request."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM request WHERE id = ?", (number,))
    return {name: read(path) for name, read in READERS.items()}


DAMAGE = [
    "client = x'ff00', conversation = x'fe', upstream = x'80', purpose = x'00'",
    "started = 'never', seconds = 'long', error = x'81'",
    "input_tokens = 9e999, repairs = 9e999, cost = 'much'",
    "cost = 1e300, seconds = -1.0, started = 1e300",
    "conversation = x'6330666665652d31', error = 7, first_byte = x''",
]


@pytest.mark.case("F60")
@pytest.mark.parametrize("columns", DAMAGE)
def test_a_damaged_request_is_left_out_and_no_other(path: Path, columns: str) -> None:
    change(path, columns)
    told = {name: read(path) for name, read in READERS.items()}
    assert count_damaged(path) == 1
    wanted = without(path, 8)
    for name in ("last", "since", "before", "begin"):
        assert told[name] == wanted[name]


def test_sums_are_without_a_request_whose_numbers_are_impossible(path: Path) -> None:
    change(path, "cost = 1e300, input_tokens = 9e18")
    told = {name: read(path) for name, read in READERS.items()}
    assert told["usage"] == without(path, 8)["usage"]


def test_damage_is_told_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert count_damaged(path) == 0
    change(path, "client = x'00'", "id IN (5, 6)")
    for _ in range(3):
        assert len(last_entries(path, 99)) == len(ENTRIES) - 2
    assert count_damaged(path) == 2
    [warning] = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert warning.getMessage().endswith("is damaged: it is read without 2 requests")


def test_a_text_that_is_not_utf_8_is_shown_as_far_as_it_can_be(path: Path) -> None:
    change(path, "client = CAST(x'73ff6b' AS TEXT)")
    assert last_entries(path, 99)[7].entry.client == "s\ufffdk"
    assert [read(path) for read in READERS.values()]
    assert count_damaged(path) == 0


def test_an_older_versions_journal_is_read_without_its_damaged_requests(
    tmp_path: Path,
) -> None:
    path = write_version_1(tmp_path / "journal.db", ENTRIES)
    change(path, "client = x'00'")
    assert [one.number for one in last_entries(path, 99)] == [
        number for number in range(1, 61) if number != 8
    ]


@pytest.mark.case("F60")
@pytest.mark.parametrize(
    "index", ["started", "conversation", "failed", "mended", "model"]
)
def test_a_damaged_index_hides_nothing(path: Path, index: str) -> None:
    wanted = {name: read(path) for name, read in READERS.items()}
    spoil(path, f"request_{index}")
    assert {name: read(path) for name, read in READERS.items()} == wanted
    assert count_damaged(path) == 0


@pytest.mark.case("F60")
def test_a_new_journal_begins_with_what_is_whole_of_a_damaged_one(path: Path) -> None:
    before = last_entries(path, 99)
    change(path, "client = x'00'")
    spoil(path, "request_model")
    damaged = path.read_bytes()
    write_journal(path, [entry(request_id="new")])
    after = last_entries(path, 99)
    assert after[:-1] == before[:7] + before[8:]
    assert after[-1] == (61, entry(request_id="new"))
    assert path.with_name("journal.db.damaged-1").read_bytes() == damaged
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.case("F60")
def test_of_a_table_all_pages_but_the_damaged_one_are_kept(tmp_path: Path) -> None:
    many = [entry(request_id=str(n), prompt="x" * 200) for n in range(200)]
    path = write_journal(tmp_path / "journal.db", many)
    content = bytearray(path.read_bytes())
    at = content.index(b"x" * 200, len(content) // 2) // 4096 * 4096
    content[at : at + 4096] = b"\xff" * 4096
    path.write_bytes(content)
    with pytest.raises(CannotStart):
        last_entries(path, 999)
    with closing(journal_file(path)) as connection:
        connection.use(check_rows)
    kept = [one.number for one in last_entries(path, 999)]
    assert 200 - 15 < len(kept) < 200
    assert (kept[0], kept[-1]) == (1, 200)


@pytest.mark.case("F60")
@pytest.mark.parametrize("seed", range(10))
def test_whatever_bits_are_flipped_a_reader_reads_or_says_why(
    path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice([1, 2, 8, 64])):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    for read in READERS.values():
        try:
            encode_line({"told": read(path)})
        except CannotStart as error:
            assert error.code in {"corrupt_data", "newer_data"}


@pytest.mark.skipif(os.name != "posix", reason="links and pipes of POSIX")
@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "dangling link"])
def test_what_is_no_file_is_not_read(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "journal.db", tmp_path / "other.db"
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)  # whose opening would wait
        case "link":
            path.symlink_to(write_journal(other, ENTRIES))
        case _:
            path.symlink_to(other)
    for read in READERS.values():
        with pytest.raises(CannotStart, match="is a link or no file"):
            read(path)


@pytest.mark.parametrize("is_begun_anew", [False, True])
def test_a_journal_may_be_moved_away_while_it_is_read(
    path: Path, is_begun_anew: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = 0

    def open_moved(path: Path) -> sqlite3.Connection:
        nonlocal opened
        opened += 1
        if opened == 1:
            path.rename(path.with_name("moved.db"))
        elif opened == 3 and is_begun_anew:
            write_journal(path, ENTRIES[:2])
        return open_unchanged(path)

    monkeypatch.setattr(reader, "open_unchanged", open_moved)
    assert len(last_entries(path, 50)) == (2 if is_begun_anew else 0)


def test_a_schema_that_cannot_even_be_quoted_is_damage(path: Path) -> None:
    content = path.read_bytes()
    for text in (b"CREATE TABLE request (", b"CREATE INDEX request_model"):
        path.write_bytes(content.replace(text, b"\xc2" * len(text), 1))
        with pytest.raises(CannotStart, match="schema"):
            last_entries(path, 1)
        with closing(journal_file(path)) as connection:
            assert connection.use(lambda db: True)
        path.with_name("journal.db.damaged-1").unlink()


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
        whole = db.execute(f"SELECT {columns} FROM request WHERE {WHOLE_ROW}")
        if whole.fetchone():
            assert make_row(JournalEntry, row, MOST) == entry()._replace(
                **{column: value}
            )
            return
        with pytest.raises(sqlite3.DatabaseError, match="byok wrote"):
            make_row(JournalEntry, row, MOST)
