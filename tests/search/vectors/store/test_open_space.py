"""A space in use: whatever happens to its file, the database mends it."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from byok.core.errors import IndexFailed
from byok.search.vectors.recipe import is_embedded
from byok.search.vectors.store import listings
from byok.search.vectors.store.matrix import BLOCK
from byok.search.vectors.store.open_space import path_of, remove_files
from byok.search.vectors.store.store import VectorStore
from tests.fakes.stores import view
from tests.fakes.vectors import SPACE, Rows, keys, probe, vector, vectors

TEXTS = [f"text {number}" for number in range(BLOCK + 300)]


class Filled:
    """A store with more than a block of vectors, each of a blob of its own."""

    def __init__(self, folder: Path, made: Path) -> None:
        shutil.copytree(made, folder, dirs_exist_ok=True)
        self.path, self.index = folder / "vectors.db", folder / "data.db"
        self.blob = 1
        self.store = VectorStore(self.path, self.index)
        [self.space] = self.store.spaces()
        self.rows = path_of(folder / "vectors", self.space.id)

    def reopen(self) -> None:
        self.store.close()
        self.store = VectorStore(self.path, self.index)

    def check(self, *gone: int) -> None:
        """Every vector is found, but those."""
        for number in (0, 77, BLOCK - 1, BLOCK, len(TEXTS) - 1):
            found = self.store.near(self.space, vector(TEXTS[number]), view(self.blob))
            is_first = found.nearest[0].ordinal == number
            assert is_first is (number not in gone)
        assert self.store.progress(self.space).embedded == len(TEXTS) - len(gone)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fill a store once; each test has a copy."""
    folder = tmp_path_factory.mktemp("filled")
    index = Rows(folder / "data.db")
    blob = index.add("a.py", chunks=len(TEXTS))[0]
    store = VectorStore(folder / "vectors.db", index.path)
    store.refresh_listing(SPACE.recipe, is_embedded)
    space = store.enter(SPACE, probe())
    store.list_chunks(space, {blob: list(enumerate(keys(*TEXTS)))})
    for first in range(0, len(TEXTS), 500):
        some = TEXTS[first : first + 500]
        store.put(space, keys(*some), vectors(some))
    store.close()
    return folder


@pytest.fixture
def filled(tmp_path: Path, made: Path) -> Iterator[Filled]:
    filled = Filled(tmp_path, made)
    yield filled
    filled.store.close()


def cut(file: Path) -> None:
    os.truncate(file, 9000)


def remove(file: Path) -> None:
    file.unlink()


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    for at in (4096 + 77 * 16, 4096 + BLOCK * 16 + 3, len(content) - 2000):
        content[at] ^= 0x40
    file.write_bytes(content)


def garble(file: Path) -> None:
    file.write_bytes(os.urandom(file.stat().st_size))


def zero(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


@pytest.mark.case("F51")
@pytest.mark.parametrize("harm", [cut, remove, flip, garble, zero])
def test_a_damaged_file_is_written_again(
    filled: Filled, harm: Callable[[Path], None]
) -> None:
    filled.check()
    filled.store.close()
    harm(filled.rows)
    filled.store = VectorStore(filled.path, filled.index)
    filled.check()


@pytest.mark.case("F51")
@pytest.mark.skipif(os.name != "posix", reason="a mapped file cannot be cut there")
def test_a_file_that_is_cut_while_in_use_is_written_again(filled: Filled) -> None:
    filled.check()
    cut(filled.rows)
    filled.check()


@pytest.mark.case("F51")
def test_a_row_that_is_damaged_in_the_database_is_made_again(filled: Filled) -> None:
    with filled.store._database.writing() as db:
        db.execute("UPDATE vector SET crc = crc + 1 WHERE key_id = 78")
        db.execute("DELETE FROM block")
    filled.store.close()
    filled.store = VectorStore(filled.path, filled.index)
    filled.check(77)
    (blob,) = filled.store.read(listings.find_incomplete, filled.space, (), 99)
    assert blob.blob_id == filled.blob
    filled.store.put(filled.space, keys(TEXTS[77]), vectors([TEXTS[77]]))
    filled.check()
    with filled.store._database.reading() as db:
        (last,) = db.execute("SELECT max(id) FROM vector").fetchone()
    assert last == (filled.space.id << 32) + len(TEXTS) - 1  # its old place
    filled.reopen()
    filled.check()


@pytest.mark.case("F51")
def test_a_database_that_is_damaged_while_in_use_is_begun_anew_at_the_next_start(
    filled: Filled, tmp_path: Path
) -> None:
    filled.reopen()
    with filled.path.open("r+b") as file:
        for page in range(8, filled.path.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(b"\xff" * 4096)
    with pytest.raises(IndexFailed, match="damaged"):
        filled.check()
    assert not (tmp_path / "vectors.db.damaged-1").exists()
    filled.reopen()
    assert (tmp_path / "vectors.db.damaged-1").exists()
    assert filled.store.spaces() == []


def test_only_files_of_spaces_that_are_gone_are_removed(tmp_path: Path) -> None:
    for number in (1, 2):
        path_of(tmp_path, number).write_bytes(b"byok rows\n")
    path_of(tmp_path, 3).write_bytes(b"notes of mine")
    (tmp_path / "other.rows").write_bytes(b"byok rows\n")
    remove_files(tmp_path, [2])
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["other.rows", "space-2.rows", "space-3.rows"]
