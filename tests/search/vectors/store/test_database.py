"""Opening the database of vectors: damage, other owners, later versions, links."""

import os
import sqlite3
from pathlib import Path

import pytest

from byok.core.errors import ConfigError, IndexFailed, NotReady
from byok.search.vectors.store.database import VectorDatabase, translate_errors
from tests.fakes.vectors import Rows


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return Rows(tmp_path / "data.db").path


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


def test_a_database_is_private_and_leaves_no_log(tmp_path: Path, index: Path) -> None:
    path = tmp_path / "new" / "vectors.db"
    database = VectorDatabase(path, index)
    database.close()
    assert [file.name for file in path.parent.iterdir()] == ["vectors.db"]
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700


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
        raise error
