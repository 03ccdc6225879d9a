"""A database of vectors beside one of blobs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from byok.search.vectors.store.database import VectorDatabase
from tests.fakes.vectors import Rows


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    return Rows(tmp_path / "data.db")


@pytest.fixture
def connection(tmp_path: Path, rows: Rows) -> Iterator[VectorDatabase]:
    made = VectorDatabase(tmp_path / "vectors.db", rows.path)
    yield made
    made.close()
