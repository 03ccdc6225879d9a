"""Opening the database of vectors: damage, other owners, later versions, links."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from byok.core.errors import CannotStart, ConfigError, IndexFailed, NotReady
from byok.search.vectors.store.database import VECTORS, VectorDatabase, translate_errors
from tests.fakes.vectors import Rows


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return Rows(tmp_path / "data.db").path


def make(path: Path, index: Path, *, clean: bool = True) -> None:
    database = VectorDatabase(path, index)
    with database.writing() as db:
        db.execute("INSERT INTO key(name) VALUES(zeroblob(5000))")
    database.close(clean=clean)


def keys_in(path: Path, index: Path) -> int:
    database = VectorDatabase(path, index)
    found = count(database)
    database.close()
    return found


def count(database: VectorDatabase) -> int:
    with database.reading() as db:
        return int(db.execute("SELECT count(*) FROM key").fetchone()[0])


@pytest.mark.parametrize("clean", [True, False])
def test_a_database_is_private_and_opens_again(
    tmp_path: Path, index: Path, clean: bool
) -> None:
    path = tmp_path / "new" / "vectors.db"
    make(path, index, clean=clean)
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
    assert keys_in(path, index) == 1


def garble(path: Path) -> None:
    path.write_bytes(b"\xff\x00 no database" * 999)


def misname(path: Path) -> None:
    """Break the name of a table, which SQLite repeats in its message as it is."""
    content = path.read_bytes()
    path.write_bytes(content.replace(b"CREATE TABLE meta", b"CREATE TABL\xa9 meta"))


def misname_column(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("ALTER TABLE key RENAME COLUMN name TO nane")


@pytest.mark.case("F51")
@pytest.mark.parametrize("harm", [garble, misname, misname_column])
def test_a_damaged_database_is_set_aside_and_begun_anew(
    tmp_path: Path, index: Path, harm: object
) -> None:
    assert callable(harm)
    path = tmp_path / "vectors.db"
    for number in (1, 2):
        make(path, index, clean=False)
        harm(path)
        content = path.read_bytes()
        assert keys_in(path, index) == 0
        aside = tmp_path / f"vectors.db.damaged-{number}"
        assert aside.read_bytes() == content


@pytest.mark.case("B128")
def test_a_later_version_is_left_as_it_is(tmp_path: Path, index: Path) -> None:
    path = tmp_path / "vectors.db"
    make(path, index)
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {VECTORS.version + 1}")
    before = path.read_bytes()
    with pytest.raises(CannotStart, match="later version") as caught:
        VectorDatabase(path, index)
    assert caught.value.code == "newer_data"
    assert path.read_bytes() == before


@pytest.mark.case("B128")
@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
@pytest.mark.parametrize("name", ["vectors.db", "vectors.db-wal", "vectors.db.new"])
def test_links_are_not_followed(tmp_path: Path, index: Path, name: str) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"mine")
    (tmp_path / name).symlink_to(target)
    with pytest.raises(ConfigError, match="plain file"):
        VectorDatabase(tmp_path / "vectors.db", index)
    assert target.read_bytes() == b"mine"


def fail(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (sqlite3.DatabaseError("malformed"), IndexFailed),
        (sqlite3.OperationalError("database is locked"), NotReady),
        (OSError(5, "I/O error"), NotReady),
    ],
    ids=str,
)
def test_errors_are_byoks_own(
    tmp_path: Path, error: Exception, kind: type[Exception]
) -> None:
    with pytest.raises(kind), translate_errors(tmp_path / "vectors.db"):
        fail(error)
