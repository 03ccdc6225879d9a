"""Indexes of older versions get the fields that came later, and lose nothing."""

import random
from pathlib import Path

import pytest
import tantivy

from byok.core.errors import IndexInUse
from byok.search.index.store.tantivy_index import (
    TantivyIndex,
    append_fields,
    lacks_fields,
)
from byok.search.index.types import Document, Prepared, Span
from tests.fakes.old_index import write_old_index
from tests.fakes.stores import ids_of, view, words

EVERYTHING = view(*range(1, 1000), chunks=0)
OLD = [n for n in range(1, 61) if n != 3]


def old_index(folder: Path) -> Path:
    """Write an old index of 59 blobs in three segments."""
    rng = random.Random(5)
    texts = {n: [" ".join(f"w{rng.randrange(20)}" for _ in range(30))] for n in OLD}
    write_old_index(folder, texts)
    return folder


def marked(path: str, *marks: str) -> Prepared:
    """Return a file of one chunk with marks."""
    return Prepared(
        b"", 1, None, (Span(0, 0, 1),), (Document("word", "", " ".join(marks)),), path
    )


def test_an_old_index_answers_as_before_and_takes_new_documents(
    tmp_path: Path,
) -> None:
    folder = old_index(tmp_path / "index")
    assert lacks_fields(folder)
    plain = tantivy.Index.open(str(folder))
    query = tantivy.Query.term_query(plain.schema, "body", "w3")
    before = [round(score, 4) for score, _ in plain.searcher().search(query, 99).hits]
    del plain

    index = TantivyIndex(folder)
    assert not index.was_new
    assert not lacks_fields(folder)
    assert index.counts() == dict.fromkeys(OLD, 1)
    hits = index.search({"w3": 1.0}, EVERYTHING)
    assert [round(hit.score, 4) for hit in hits] == before
    assert index.find_marked({":t:Foo": 1.0}, EVERYTHING) == []
    index.add(100, marked("a", ":t:Foo", ":T:foo"))
    index.commit()
    assert ids_of(index.find_marked({":t:Foo": 1.0}, EVERYTHING)) == [100]
    index.close()
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_an_old_index_is_merged_with_new_documents(tmp_path: Path) -> None:
    folder = old_index(tmp_path / "index")
    index = TantivyIndex(folder)
    for blob_id in range(100, 400):
        index.add(blob_id, marked("a", f":t:Foo{blob_id % 7}"))
        if blob_id % 10 == 0:
            index.commit()
    for blob_id in range(1, 60):  # as each is indexed again
        index.remove(blob_id)
        index.add(blob_id, marked("a", ":t:Foo9"))
    index.commit()
    index.close()  # waits for merges
    index = TantivyIndex(folder)
    assert len(list(folder.glob("*.idx"))) < 10
    assert index.counts() == dict.fromkeys([*range(1, 61), *range(100, 400)], 1)
    assert sorted(ids_of(index.find_marked({":t:Foo9": 1.0}, EVERYTHING))) == [
        *range(1, 60)
    ]
    expected = [blob_id for blob_id in range(100, 400) if blob_id % 7 == 3]
    assert sorted(ids_of(index.find_marked({":t:Foo3": 1.0}, EVERYTHING))) == expected
    assert not index.is_damaged
    index.close()


def test_a_kill_while_fields_are_appended_leaves_one_form_or_the_other(
    tmp_path: Path,
) -> None:
    folder = old_index(tmp_path / "index")
    left = folder / ".meta.json.abcd1234"
    left.write_bytes(b"half")
    TantivyIndex(folder).close()
    index = TantivyIndex(folder)
    assert len(index.counts()) == 59
    index.close()


def test_fields_are_not_appended_while_another_process_writes(tmp_path: Path) -> None:
    folder = old_index(tmp_path / "index")
    holder = tantivy.Index.open(str(folder)).writer(30_000_000, 1)
    with pytest.raises(IndexInUse):
        TantivyIndex(folder)
    assert lacks_fields(folder)
    holder.wait_merging_threads()
    TantivyIndex(folder).close()
    assert not lacks_fields(folder)


@pytest.mark.parametrize("content", [b"", b"junk", b"{}", b'{"schema": [1]}', b"[]"])
def test_fields_of_a_damaged_index_are_left_alone(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "meta.json").write_bytes(content)
    assert not lacks_fields(tmp_path)
    append_fields(tmp_path)
    assert (tmp_path / "meta.json").read_bytes() == content


def test_a_new_index_has_all_fields(tmp_path: Path) -> None:
    index = TantivyIndex(tmp_path / "index")
    index.add(1, words("a.py", "alpha"))
    index.commit()
    index.close()
    assert not lacks_fields(tmp_path / "index")
