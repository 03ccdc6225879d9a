"""The contract of a lexical index, for each engine: what is added is found."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from byok.search.index.store.chunk_index import ChunkScore, LexicalIndex
from byok.search.index.store.tantivy_index import TantivyIndex
from byok.search.index.types import Document, Prepared, Span
from tests.fakes.stores import (
    ids_of,
    view,
    words,
)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[LexicalIndex]:
    made = TantivyIndex(tmp_path / "index")
    yield made
    made.close()


def test_lexical_index_weights_and_fields_count(index: LexicalIndex) -> None:
    span = (Span(0, 0, 1),)
    for blob_id, document, path in (
        (1, Document("word filler", "other"), "path"),
        (2, Document("other filler", "word"), "path"),
        (3, Document("other filler", "other"), "word"),
    ):
        index.add(blob_id, Prepared(b"", 1, None, span, (document,), path))
    index.commit()
    everything = view(1, 2, 3)
    assert ids_of(index.search({"word": 1.0}, everything)) == [1, 3, 2]
    once, twice = (
        index.search({"word": weight}, everything)[0].score for weight in (1.0, 2.0)
    )
    assert twice == pytest.approx(2 * once)


def test_lexical_index_knows_how_common_a_word_is(index: LexicalIndex) -> None:
    assert index.share_of("word") == 0.0
    for blob_id, chunks in enumerate((["word word", "rare"], ["word"], ["-"]), 1):
        index.add(blob_id, words(f"{blob_id}.py", *chunks))
    index.commit()
    assert [index.share_of(term) for term in ("word", "rare", "no")] == [0.5, 0.25, 0]


def test_lexical_index_finds_chunks_by_mark_with_the_highest_weight(
    index: LexicalIndex,
) -> None:
    for blob_id, borne in enumerate((":t:Foo :T:foo", ":f:foo", ":t:Bar", ""), 1):
        documents = (Document(":t:Foo foo", "foo", borne),)
        prepared = Prepared(b"", 1, None, (Span(0, 0, 1),), documents, "foo")
        index.add(blob_id, prepared)
    index.commit()
    marks = {":t:Foo": 1.0, ":T:foo": 0.5, ":f:foo": 0.25}
    expected = [ChunkScore(1, 0, 1.0), ChunkScore(2, 0, 0.25)]
    assert index.find_marked(marks, view(1, 2, 3, 4)) == expected
    assert index.find_marked(marks, view(1, 2, 3, 4, chunks=4)) == expected
    assert index.find_marked(marks, view(1, 2, 3, 4), 1) == expected[:1]
    assert index.find_marked(marks, view(2, 3)) == expected[1:]
    assert index.find_marked(marks, view()) == []
    assert index.find_marked({}, view(1)) == []


def test_lexical_index_filters_a_view_in_either_way_alike(
    index: LexicalIndex,
) -> None:
    rng = random.Random(3)
    for blob_id in range(1, 301):
        chunk = " ".join(f"w{rng.randrange(40)}" for _ in range(rng.randrange(1, 30)))
        index.add(blob_id, words(f"f{blob_id}.py", chunk, chunk[::2]))
        if blob_id % 90 == 0:
            index.commit()
    index.commit()
    for share in (0.02, 0.3, 0.6, 1.0):
        ids = rng.sample(range(1, 301), int(300 * share))
        small = view(*ids, chunks=0, key=f"small {share}")
        large = view(*ids, chunks=600, key=f"large {share}")
        for terms in ({"w1": 1.0}, {"w2": 2.0, "w3": 0.5, "nothing": 1.0}):
            for limit in (5, 400):
                both = [index.search(terms, one, limit) for one in (small, large)]
                assert scores(both[0]) == scores(both[1])
                assert len(both[0]) <= limit
                assert {hit.blob_id for hit in both[0]} <= set(ids)


def scores(hits: list[ChunkScore]) -> list[float]:
    """Chunks of equal score may come in any order, the last of them may differ."""
    return [round(hit.score, 4) for hit in hits]
