"""The contract that recovery relies on, for every engine."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from byok.search.index.store import blobs, recovery
from byok.search.index.store.chunk_index import ChunkIndex, remove_all
from byok.search.index.store.schema import TO_INDEX
from byok.search.index.store.tantivy_index import TantivyIndex
from tests.fakes.memory_index import MemoryIndex
from tests.fakes.stores import Opened, of_upload, upload, words


@dataclass
class Filled:
    """An index, and how a blob with some chunks is added to it."""

    index: ChunkIndex
    add: Callable[[int, int], None]


def lexical(index: TantivyIndex | MemoryIndex) -> Filled:
    return Filled(index, lambda blob, n: index.add(blob, words("a.py", *["alpha"] * n)))


@pytest.fixture(params=["tantivy", "memory"])
def filled(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Filled]:
    folder = tmp_path / "index"
    engine = TantivyIndex if request.param == "tantivy" else MemoryIndex
    made = lexical(engine(folder))
    yield made
    made.index.close()


def test_chunk_index_removes_a_blob(filled: Filled) -> None:
    for blob_id in (1, 2, 2**40):
        filled.add(blob_id, 2)
    filled.index.commit()
    remove_all(filled.index, [1, 2**40])
    filled.index.commit()
    assert filled.index.counts() == {2: 2}
    assert filled.index.chunks == 2


def test_chunk_index_removes_only_what_was_added_before(filled: Filled) -> None:
    filled.add(1, 1)
    filled.index.remove(1)
    filled.add(1, 2)
    filled.index.commit()
    assert filled.index.counts() == {1: 2}


def test_chunk_index_is_empty_after_clear(filled: Filled) -> None:
    filled.add(1, 1)
    filled.index.commit()
    filled.add(2, 1)
    filled.index.clear()
    assert filled.index.counts() == Counter()
    filled.add(3, 1)
    filled.index.commit()
    assert filled.index.counts() == {3: 1}


def test_recovery_has_a_chunk_index_filled_that_is_empty(
    tmp_path: Path, filled: Filled
) -> None:
    opened = Opened(tmp_path / "opened")
    with opened.database.writing() as db:
        _, (blob_id,) = blobs.store(db, [upload("a.py", "alpha")], {}, 7)
    opened.batches.put([of_upload(blob_id, "a.py", words("a.py", "alpha"))])
    opened.batches.flush()
    recovery.recover(opened.database, filled.index)
    assert opened.database.rows("SELECT state FROM blob") == [(TO_INDEX,)]
    opened.close()
