from typing import NamedTuple

import pytest

from byok.search.index.store.chunk_index import ChunkScore
from byok.search.index.types import Kind
from byok.search.retrieval.model_aids import NearChunks
from byok.search.retrieval.rank import FileEntry, RankedFile, Reasons
from byok.search.retrieval.ranker import fuse


class _Blob(NamedTuple):
    path: str
    kind: Kind = Kind.CODE


_BLOBS = {
    1: _Blob("first.py"),
    2: _Blob("second.py"),
    3: _Blob("third.py"),
    4: _Blob("app.yaml", Kind.CONF),
    5: _Blob("test_a.py", Kind.TEST),
}


def _by_blob(blob_id: int) -> FileEntry | None:
    blob = _BLOBS.get(blob_id)
    return FileEntry(blob_id, *blob) if blob else None


def _found(blob_id: int, score: float, *chunks: tuple[int, float]) -> RankedFile:
    """A file that was found by words."""
    scored = tuple(ChunkScore(blob_id, *chunk) for chunk in chunks)
    path, kind = _BLOBS[blob_id]
    reasons = Reasons(score, 0.0, 0.0, 1.0, 0.0)
    return RankedFile(blob_id, path, kind, score, scored, reasons)


def _near(
    *chunks: tuple[int, int, float], best: tuple[int, int, float] | None = None
) -> NearChunks:
    nearest = [ChunkScore(*chunk) for chunk in chunks]
    return NearChunks(nearest, {best[0]: ChunkScore(*best)} if best else {})


_TWO = [_found(1, 10.0, (0, 8.0), (1, 4.0)), _found(2, 9.5, (0, 9.0))]


@pytest.mark.parametrize(
    ("near", "expected"),
    [
        (_near(), {"first.py": 10.0, "second.py": 9.5}),
        # Nearness is relative to the nearest and the farthest candidate.
        (
            _near((2, 0, 0.9), (1, 0, 0.8)),
            {"second.py": 12.5, "first.py": 10.0},
        ),
        (
            _near((2, 0, 0.9), (3, 0, 0.85), (1, 0, 0.8)),
            {"second.py": 12.5, "first.py": 10.0, "third.py": 1.5},
        ),
        # Only the nearest chunk of a file counts.
        (
            _near((2, 0, 0.9), (2, 1, 0.9), (2, 2, 0.7), best=(1, 0, 0.7)),
            {"second.py": 12.5, "first.py": 10.0},
        ),
        # A single candidate is the nearest one.
        (_near((2, 0, -0.1), best=(1, 0, -0.1)), {"first.py": 13.0, "second.py": 12.5}),
        # A file that words found counts by its best chunk, near or not.
        (
            _near((3, 0, 0.9), best=(1, 1, 0.6)),
            {"first.py": 10.0, "second.py": 9.5, "third.py": 3.0},
        ),
        # Configuration counts less.
        (
            _near((4, 0, 0.9), (3, 0, 0.9), (1, 0, 0.1)),
            {"first.py": 10.0, "second.py": 9.5, "third.py": 3.0, "app.yaml": 1.8},
        ),
        # A blob that left the view meanwhile is no file.
        (_near((9, 0, 0.9), (1, 0, 0.8)), {"first.py": 10.0, "second.py": 9.5}),
    ],
)
def test_scores_are_added(near: NearChunks, expected: dict[str, float]) -> None:
    files = fuse(_TWO, near, _by_blob)
    assert {file.path: round(file.score, 6) for file in files} == expected
    assert [file.path for file in files] == list(expected)


def test_what_vectors_add_is_told() -> None:
    [first, second] = fuse(_TWO, _near((2, 0, 0.9), (1, 0, 0.8)), _by_blob)
    assert first.vector == pytest.approx(3.0)
    assert first.reasons.text == 9.5
    assert second.vector == 0.0


def test_without_words_the_nearest_come_first() -> None:
    near = _near((2, 3, 0.9), (1, 0, 0.85), (2, 1, 0.8), (4, 0, 0.7))
    files = fuse([], near, _by_blob)
    assert [file.path for file in files] == ["second.py", "first.py"]
    assert [chunk.ordinal for chunk in files[0].chunks] == [3, 1]


def test_the_kind_that_a_question_names_counts_more() -> None:
    near = _near((5, 0, 0.9), (1, 0, 0.8))
    [plain] = [f for f in fuse(_TWO, near, _by_blob) if f.path == "test_a.py"]
    named = fuse(_TWO, near, _by_blob, frozenset({Kind.TEST}))
    [asked_for] = [file for file in named if file.path == "test_a.py"]
    assert plain.score < asked_for.score


def test_near_chunks_are_shown_beside_those_that_match() -> None:
    near = _near((1, 7, 0.9), (1, 1, 0.8), (2, 0, 0.5))
    [first, _] = fuse(_TWO, near, _by_blob)
    assert [chunk.ordinal for chunk in first.chunks] == [0, 1, 7]
    assert first.chunks[0].score == 8.0


def test_another_version_of_a_file_that_words_found_adds_nothing() -> None:
    def by_blob(blob_id: int) -> FileEntry | None:
        return FileEntry(blob_id, "first.py", Kind.CODE)

    files = fuse(_TWO[:1], _near((8, 0, 0.9), (1, 0, 0.1)), by_blob)
    assert [(file.blob_id, file.score) for file in files] == [(1, 10.0)]


def test_only_so_many_files_are_kept() -> None:
    near = _near((1, 0, 0.9), (2, 0, 0.8), (3, 0, 0.7))
    assert len(fuse([], near, _by_blob, limit=1)) == 1


def test_equal_scores_are_ordered_by_path() -> None:
    near = _near((3, 0, 0.9), (2, 0, 0.9), (1, 0, 0.9))
    assert [file.path for file in fuse([], near, _by_blob)] == [
        "first.py",
        "second.py",
        "third.py",
    ]


_FIVE = [
    _found(1, 10.0, (0, 8.0)),
    _found(2, 9.5, (0, 9.0)),
    _found(3, 9.0, (0, 9.0)),
    _found(4, 8.0, (0, 9.0)),
    _found(5, 7.0, (0, 9.0)),
]


def test_a_file_still_without_a_vector_neither_gains_nor_loses() -> None:
    near = _near((2, 0, 0.9), (3, 0, 0.7), (4, 0, 0.8))
    files = {file.path: file.vector for file in fuse(_FIVE, near, _by_blob)}
    assert files == {
        "second.py": pytest.approx(3.0),
        "first.py": pytest.approx(1.5),  # the mean of the three others
        "third.py": 0.0,
        "app.yaml": pytest.approx(1.5),
        "test_a.py": 0.0,  # never has one
    }


@pytest.mark.parametrize(
    ("near", "used"),
    [
        ([2, 3], True),
        ([2], False),
        ([], False),
        ([5], False),
    ],
)
def test_words_alone_decide_where_most_vectors_are_missing(
    near: list[int], *, used: bool
) -> None:
    found = _near(*((blob_id, 0, 0.9) for blob_id in near))
    assert (fuse(_FIVE, found, _by_blob) != _FIVE) is used


def test_a_file_known_by_its_history_alone_is_not_waited_for() -> None:
    by_history = _found(3, 1.0)
    files = fuse([*_TWO, by_history], _near((1, 0, 0.9), (2, 0, 0.8)), _by_blob)
    assert files[2] == by_history
