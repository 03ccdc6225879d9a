"""The database: transactions, a clean end, damage, and files of a later byok."""

import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from byok.core.errors import CannotStart
from byok.features.journal.schema import JOURNAL
from byok.search.index.store.schema import INDEX
from byok.search.vectors.store.database import VECTORS
from byok.storage.damage import is_damage
from byok.storage.database import Database, open_or_begin_anew, open_second, select_in
from byok.storage.kind import DatabaseKind, MigrationStep
from byok.upstream.provider_data_store import PROVIDER_DATA
from tests.fakes.version_1 import write_version_1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


def filled(path: Path, rows: int = 300) -> None:
    """Make a database with some pages, closed in good order."""
    database = Database(path, INDEX)
    with database.writing() as db:
        for n in range(rows):
            insert(db, bytes([n % 256, n // 256]) * 16)
    database.close()


def insert(db: sqlite3.Connection, name: bytes) -> None:
    db.execute(
        "INSERT INTO blob(name, path, size, state) VALUES(?, 'p', 1, 1)", (name,)
    )


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_database_that_was_not_closed_says_so(path: Path) -> None:
    database = Database(path, INDEX)
    assert database.was_clean
    database.connection.close()
    database = Database(path, INDEX)
    assert not database.was_clean
    database.close(clean=False)
    database = Database(path, INDEX)
    assert not database.was_clean
    database.close()
    database = Database(path, INDEX)
    assert database.was_clean
    database.close()


def test_database_rolls_back_a_failing_block(path: Path) -> None:
    database = Database(path, INDEX)
    with pytest.raises(KeyboardInterrupt), database.writing() as db:
        insert(db, b"1")
        raise KeyboardInterrupt
    assert database.one("SELECT count(*) FROM blob") == 0
    with database.writing() as db:
        insert(db, b"2")
    assert database.one("SELECT count(*) FROM blob") == 1
    database.close()


def test_database_transaction_that_cannot_end_does_not_block_the_next(
    path: Path,
) -> None:
    database = Database(path, INDEX)
    pages = database.one("PRAGMA page_count")
    database.connection.execute(f"PRAGMA max_page_count = {pages}")
    full = pytest.raises(sqlite3.OperationalError, match="full")
    with full, database.writing() as db:
        db.execute("INSERT INTO meta VALUES('x', ?)", (bytes(100_000),))
    database.connection.execute("CREATE TEMP TRIGGER no BEFORE DELETE ON meta BEGIN "
                         "SELECT RAISE(ROLLBACK, 'gone'); END")  # fmt: skip
    gone = pytest.raises(sqlite3.IntegrityError, match="gone")
    with gone, database.writing() as db:
        db.execute("DELETE FROM meta")
    with pytest.raises(sqlite3.IntegrityError), database.writing() as db:
        db.execute("PRAGMA defer_foreign_keys = ON")  # fails at COMMIT only
        db.execute("INSERT INTO content VALUES(99, x'', 0)")
    with database.writing():
        database.set_meta("still", "works")
    assert database.rows("SELECT value FROM meta WHERE key = 'still'") == [("works",)]
    database.close()


@pytest.mark.parametrize("count", [0, 1, 500, 501, 1700])
def test_database_lookup_takes_any_number_of_values(path: Path, count: int) -> None:
    filled(path, 600)
    with closing(open_second(path, INDEX.pragmas)) as db:
        rows = list(select_in(db, "SELECT id FROM blob WHERE id IN (?)", range(count)))
    assert [row[0] for row in rows] == list(range(1, min(count, 601)))


def _foreign(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.executescript(f"CREATE TABLE t(x); PRAGMA user_version = {INDEX.version}")


def _version_0(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t(x)")


def _zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _flipped(*words: bytes) -> Callable[[Path], object]:
    """Return what damages words of the schema, so that they are no UTF-8."""

    def flip(path: Path) -> None:
        whole = path.read_bytes()
        for word in words:
            assert word in whole
            whole = whole.replace(word, b"\xba" + word[1:])
        path.write_bytes(whole)

    return flip


def _edited(sql: str) -> Callable[[Path], object]:
    def edit(path: Path) -> None:
        with closing(sqlite3.connect(path)) as db:
            db.executescript(sql)

    return edit


DAMAGES: dict[str, Callable[[Path], object]] = {
    "0 bytes": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(random.Random(1).randbytes(20_000)),
    "text": lambda path: path.write_text("no database at all, but some text " * 9),
    "zeros": _zero,
    "half a header": lambda path: os.truncate(path, 50),
    "a name in the schema": _flipped(b"parser_crasher"),
    "a name that SQLite's error quotes": _flipped(
        b"CREATE TABLE parser_crasher", b"parser_crasher"
    ),
    "a table less": _edited("DROP TABLE parser_crasher"),
    "a column less": _edited("ALTER TABLE blob RENAME COLUMN used TO asked"),
    "another program's": _foreign,
    "another program's, version 0": _version_0,
}


@pytest.mark.case("F36")
def test_database_with_damaged_pages_is_recognised_and_left(path: Path) -> None:
    database = Database(path, INDEX)
    with database.writing() as db:
        for n in range(2000):
            insert(db, n.to_bytes(32, "big"))
    database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.connection.close()
    whole = path.read_bytes()
    found = 0
    for seed in range(20):
        rng = random.Random(seed)
        page = 4096 * rng.randrange(1, len(whole) // 4096)
        path.write_bytes(whole[:page] + rng.randbytes(4096) + whole[page + 4096 :])
        before = path.read_bytes()
        try:
            Database(path, INDEX).connection.close()  # a page that nothing is in
        except sqlite3.DatabaseError as error:
            found += is_damage(error)
            assert path.read_bytes() == before
    assert found > 15


KINDS = {
    "index": INDEX,
    "journal": JOURNAL,
    "vectors": VECTORS,
    "provider data": PROVIDER_DATA,
}


@pytest.mark.case("F35", "B128")
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_no_database_of_a_later_byok_is_touched(path: Path, kind: DatabaseKind) -> None:
    Database(path, kind).close()
    with closing(sqlite3.connect(path)) as later:
        later.execute(f"PRAGMA user_version = {kind.version + 1}")
    before = bytes_of(path.parent)
    with pytest.raises(CannotStart) as caught:
        open_or_begin_anew(path, kind)
    assert caught.value.code == "newer_data"
    assert bytes_of(path.parent) == before


@pytest.mark.case("F36", "F51")
@pytest.mark.parametrize(
    ("kind", "damage"),
    [(INDEX, damage) for damage in DAMAGES]
    + [(k, damage) for k in KINDS.values() for damage in ("0 bytes", "garbage")],
)
def test_every_damaged_database_is_set_aside_whole_and_begun_anew(
    path: Path, kind: DatabaseKind, damage: str
) -> None:
    Database(path, kind).close()
    DAMAGES[damage](path)
    before = path.read_bytes()
    for _ in range(2):
        open_or_begin_anew(path, kind).close()
    names = {file.name for file in path.parent.iterdir()}
    assert names == {"data.db", "data.db.damaged-1"}
    assert path.with_name("data.db.damaged-1").read_bytes() == before


def test_a_salvage_that_fails_leaves_no_open_file(path: Path) -> None:
    lent = list[sqlite3.Connection]()

    def fail(aside: Path, db: sqlite3.Connection) -> None:
        lent.append(db)
        raise OSError("no salvage")

    path.write_bytes(b"no database at all" * 500)
    with pytest.raises(OSError, match="no salvage"):
        open_or_begin_anew(path, JOURNAL, fail)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        lent[0].execute("SELECT 1")


def _malformed(db: sqlite3.Connection) -> None:
    if not db.execute("SELECT 1 FROM blob").fetchone():
        return  # the rehearsal, on empty tables
    raise sqlite3.DatabaseError("database disk image is malformed")


def test_damage_that_a_migration_meets_leaves_the_old_version(tmp_path: Path) -> None:
    write_version_1(tmp_path, count=2)
    steps = (*INDEX.steps, MigrationStep(INDEX.version, _malformed))
    with pytest.raises(sqlite3.DatabaseError) as caught:
        Database(tmp_path / "data.db", replace(INDEX, steps=steps))
    assert is_damage(caught.value)
    with closing(sqlite3.connect(tmp_path / "data.db")) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)


def test_the_log_of_a_database_that_was_moved_away_is_kept_and_not_played(
    path: Path,
) -> None:
    database = Database(path, INDEX)
    with database.writing() as db:
        insert(db, b"old")
    log = path.with_name("data.db-wal").read_bytes()
    database.close()
    path.unlink()
    path.with_name("data.db-wal").write_bytes(log)
    database = Database(path, INDEX)
    assert database.rows("SELECT name FROM blob") == []
    assert database.one("PRAGMA quick_check") == "ok"
    assert path.with_name("data.db.damaged-1-wal").read_bytes() == log
    database.close()


@pytest.mark.parametrize("name", ["a b.db", "100%.db", "a?b#c.db", "ä.db"])
def test_database_may_have_any_file_name(tmp_path: Path, name: str) -> None:
    Database(tmp_path / name, INDEX).close()
    Database(tmp_path / name, INDEX).close()
    assert [file.name for file in tmp_path.iterdir()] == [name]
