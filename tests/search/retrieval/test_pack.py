"""The chunks worth most are shown, as many as there is room for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.search.index.store.chunk_index import ChunkScore
from byok.search.index.types import Kind, Span
from byok.search.retrieval.pack import PackedAnswer, Section, merge_spans, pack
from byok.search.retrieval.rank import RankedFile, Reasons

NONE = Reasons(0, 0, 0, 1, 0)


def ranked_file(
    blob: int, score: float, chunks: list[tuple[int, float]] | None = None
) -> RankedFile:
    found = [ChunkScore(blob, n, s) for n, s in chunks or []]
    return RankedFile(blob, f"{blob:02}.py", Kind.CODE, score, tuple(found), NONE)


def spans(*sizes: int, lines: int = 10) -> list[Span]:
    return [Span(n * lines, (n + 1) * lines - 1, size) for n, size in enumerate(sizes)]


def packed(
    ranked: list[RankedFile], of: dict[int, list[Span]], limit: int = 20_000
) -> PackedAnswer:
    return pack(ranked, of.__getitem__, limit)


def test_pack_shows_the_best_file_at_length_and_a_good_second() -> None:
    files = [
        ranked_file(1, 10.0, [(0, 5.0), (2, 4.9), (4, 4.8)]),
        ranked_file(2, 9.5, [(1, 3.0), (3, 0.5)]),
        ranked_file(3, 2.0, [(0, 2.0)]),
    ]
    of = {n: spans(*[500] * 6) for n in (1, 2, 3)}
    found = packed(files, of, 3000)
    assert [(f.path, f.sections) for f in found.files] == [
        ("01.py", (Section(0, 9), Section(20, 29))),
        ("02.py", (Section(10, 19), Section(30, 39))),
    ]
    assert found.others == ("03.py",)


@pytest.mark.parametrize(("others", "shown"), [(6, 3), (0, 8)])
def test_pack_lets_a_file_fill_what_others_leave_and_less_than_half_besides(
    others: int, shown: int
) -> None:
    big = ranked_file(1, 10.0, [(2 * n, 5.0) for n in range(8)])
    rest = [ranked_file(n, 5.0, [(0, 5.0)]) for n in range(2, 2 + others)]
    of = {file.blob_id: spans(*[900] * 16) for file in (big, *rest)}
    found = packed([big, *rest], of, 8_200)
    assert len(found.files[0].sections) == shown
    assert len(found.files) > others // 2


def test_pack_replaces_a_chunk_that_does_not_fit_by_one_that_does() -> None:
    files = [
        ranked_file(1, 10.0, [(0, 5.0), (2, 4.0)]),
        ranked_file(2, 8.0, [(0, 5.0)]),
    ]
    of = {1: spans(300, 10, 3000), 2: spans(300)}
    assert [f.blob_id for f in packed(files, of, 1200).files] == [1, 2]


def test_pack_takes_the_first_chunk_even_if_it_does_not_fit() -> None:
    files = [ranked_file(1, 10.0, [(0, 5.0)]), ranked_file(2, 9.0, [(0, 5.0)])]
    found = packed(files, {1: spans(9000), 2: spans(9000)}, 500)
    assert [f.blob_id for f in found.files] == [1]
    assert found.others == ("02.py",)


def test_pack_shows_the_first_span_of_a_file_found_by_history() -> None:
    found = packed([ranked_file(1, 1.0)], {1: spans(100, 100)})
    assert found.files[0].sections == (Section(0, 9),)


@pytest.mark.parametrize("of", [[], spans(100)])
def test_pack_skips_a_chunk_that_is_gone(of: list[Span]) -> None:
    found = packed([ranked_file(1, 1.0, [(3, 1.0)])], {1: of})
    assert found == PackedAnswer((), ("01.py",))


def test_pack_shows_sixteen_files_with_code_and_names_twenty_more() -> None:
    files = [ranked_file(n, 100.0 - n, [(0, 1.0)]) for n in range(60)]
    found = packed(files, {n: spans(10) for n in range(60)}, 80_000)
    assert [file.blob_id for file in found.files] == list(range(16))
    assert found.others == tuple(f"{n:02}.py" for n in range(16, 36))


@pytest.mark.parametrize(("step", "most"), [(4.0, 12), (2.5, 24), (1.0, 40)])
def test_pack_shows_one_line_of_files_behind_and_more_where_many_are_as_good(
    step: float, most: int
) -> None:
    files = [ranked_file(n, max(1.0, 100.0 - step * n), [(0, 1.0)]) for n in range(60)]
    of = {n: spans(3_800) for n in range(60)}
    found = pack(
        files,
        of.__getitem__,
        20_000,
        lambda file: None if file.blob_id == 4 else Span(3, 3, 60),
    )
    shown = {file.blob_id: file.sections for file in found.files}
    assert [*shown] == [0, 1, 2, 3, *range(5, 4 + most)]
    assert shown[3] == (Section(0, 9),)
    assert {shown[n] for n in range(5, 4 + most)} == {(Section(3, 3),)}
    listed = max(0, 20 - most + 1)
    others = [4, *range(4 + most, 60)][:listed]
    assert found.others == tuple(f"{n:02}.py" for n in others)


@pytest.mark.parametrize(
    ("given_spans", "expected"),
    [
        ([], []),
        ([(0, 4)], [(0, 4)]),
        ([(5, 9), (0, 4)], [(0, 9)]),
        ([(0, 4), (8, 9)], [(0, 9)]),
        ([(0, 4), (9, 9)], [(0, 4), (9, 9)]),
        ([(0, 9), (2, 4)], [(0, 9)]),
    ],
)
def test_pack_joins_sections_a_few_lines_apart(
    given_spans: list[tuple[int, int]], expected: list[tuple[int, int]]
) -> None:
    found = merge_spans(Section(*span) for span in given_spans)
    assert found == tuple(Section(*span) for span in expected)


FILES = st.lists(
    st.lists(st.tuples(st.integers(0, 9), st.floats(0.01, 50)), max_size=10,
             unique_by=lambda chunk: chunk[0]),
    max_size=20,
)  # fmt: skip


@given(FILES, st.integers(1, 5000), st.integers(0, 30_000))
def test_what_is_packed_fits_and_each_file_stands_once(
    chunks: list[list[tuple[int, float]]], size: int, limit: int
) -> None:
    files = [
        ranked_file(n, 50.0 - n, sorted(some, key=lambda c: -c[1]))
        for n, some in enumerate(chunks)
    ]
    of = {n: spans(*[size] * 10) for n in range(len(files))}
    found = packed(files, of, limit)
    shown = [file.blob_id for file in found.files]
    assert shown == sorted(set(shown))
    assert len(shown) <= 16 and len(found.others) <= 32
    assert not {file.path for file in found.files} & set(found.others)
    taken = sum(
        (last - first + 1) // 10 for f in found.files for first, last in f.sections
    )
    assert taken * min(size, 4000) <= limit or taken == 1
    for file in found.files:
        for before, after in zip(file.sections, file.sections[1:], strict=False):
            assert after.first - before.last > 4
