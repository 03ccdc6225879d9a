"""Blobs are read in groups; what cannot be read is told."""

from pathlib import Path

import pytest

from byok.search.index.store.schema import pack_spans
from byok.search.index.types import Span
from byok.search.vectors.filling import group, read_texts
from byok.search.vectors.recipe import texts_of
from byok.search.vectors.store.listings import ListedBlob
from tests.fakes.engines import complete, engine, project


def blob(number: int, chunks: int) -> ListedBlob:
    return ListedBlob(number, "a.py", pack_spans([Span(0, 0, 1)] * chunks))


@pytest.mark.parametrize(
    ("chunks", "sizes"),
    [([1] * 60, [24, 24, 12]), ([100, 100, 1, 500, 1], [2, 2, 1]), ([], [])],
    ids=str,
)
def test_groups_are_bounded_by_blobs_and_by_chunks(
    chunks: list[int], sizes: list[int]
) -> None:
    blobs = [blob(number, count) for number, count in enumerate(chunks)]
    groups = list(group(blobs))
    assert [len(some) for some in groups] == sizes
    assert [one for some in groups for one in some] == blobs


async def test_texts_of_blobs_that_can_be_read(tmp_path: Path) -> None:
    root = project(tmp_path / "root", a__py="def alpha(): pass\n", b__py="beta = 1\n")
    async with engine(tmp_path / "data", root) as made:
        await complete(made)
        with made.store.reading() as db:
            rows = db.execute("SELECT id, path, spans FROM blob ORDER BY path")
            one, other = [ListedBlob(*row) for row in rows]
        (root / "b.py").write_text("something else\n")
        stale = one._replace(spans=one.spans * 2)
        gone = ListedBlob(99, "c.py", one.spans)
        found = read_texts(made.contents, [one, other, gone], texts_of)
        texts = found[one.blob_id]
        assert texts is not None
        assert "def alpha()" in texts[0].text
        assert found[other.blob_id] is None
        assert found[99] is None
        assert read_texts(made.contents, [stale], texts_of) == {one.blob_id: None}
