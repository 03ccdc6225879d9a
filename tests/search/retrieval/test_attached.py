"""Attached files are shown whole, or each from its start for its share."""

from hypothesis import given
from hypothesis import strategies as st

from byok.search.retrieval.pack import PackedFile, Section, merge_spans
from byok.search.retrieval.passages import AttachedFile, render_attached

HEADING = "[files that the user attached]\n"


def file(blob: int, *lines: str) -> AttachedFile:
    return AttachedFile(blob, f"{blob}.py", lines)


def test_attached_files_that_fit_are_shown_whole_in_their_order() -> None:
    found = render_attached([file(2, "two", "deux"), file(1, "one")], 1000)
    assert found.text == (
        f"{HEADING}Path: 2.py\n     1\ttwo\n     2\tdeux\nPath: 1.py\n     1\tone\n"
    )
    assert found.shown == (
        PackedFile(2, "2.py", (Section(0, 1),)),
        PackedFile(1, "1.py", (Section(0, 0),)),
    )


def test_attached_large_file_is_cut_at_a_line_and_leaves_small_ones_whole() -> None:
    large = file(1, *(f"line {n}" for n in range(1000)))
    small = file(2, *(f"small {n}" for n in range(20)))
    found = render_attached([large, small], 2000)
    assert 1960 < len(found.text) <= 2000
    [(_, _, (start,)), whole] = found.shown
    assert whole == PackedFile(2, "2.py", (Section(0, 19),))
    assert start.first == 0
    cut = f"{start.last + 1:6}\tline {start.last}\n...\nPath: 2.py\n"
    assert cut in found.text


def test_attached_file_of_a_million_lines_is_read_as_far_as_it_fits() -> None:
    class Counted(list[str]):
        seen = 0

        def __getitem__(self, at):  # type: ignore[no-untyped-def]
            found = super().__getitem__(at)
            self.seen += len(found) if isinstance(at, slice) else 1
            return found

    lines = Counted(["some line"] * 1_000_000)
    found = render_attached([AttachedFile(1, "a.py", lines)], 1000)
    assert found.text.endswith("\tsome line\n...\n")
    assert lines.seen < 1000


def test_attached_file_shortened_by_masking_is_still_marked_as_cut() -> None:
    key = "sk-" + "a1" * 150
    found = render_attached([file(1, *[key] * 100)], 1000)
    assert key not in found.text
    assert found.text.endswith("...\n")
    [(_, _, (start,))] = found.shown
    assert start.last < 99


def test_attached_file_that_does_not_fit_shows_the_matching_parts() -> None:
    large = file(1, *(f"line {n}" for n in range(1000)))
    asked: list[tuple[int, int]] = []

    def parts(blob_id: int, room: int) -> list[Section]:
        asked.append((blob_id, room))
        return [Section(100, 101), Section(900, 900)] if blob_id == 1 else []

    other = large._replace(blob_id=2)
    found = render_attached([large, other, file(3, "x")], 3000, find_sections=parts)
    assert [blob_id for blob_id, _ in asked] == [1, 2]  # the last one fits
    assert all(1400 < room < 1500 for _, room in asked)
    one, two, three = found.shown
    assert found.text.startswith(f"{HEADING}Path: 1.py\n     1\tline 0\n")
    assert (
        "...\n   101\tline 100\n   102\tline 101\n...\n"
        "   901\tline 900\n...\nPath: 1.py\n     1\tline 0\n"
    ) in found.text
    assert one.sections[1:] == (Section(100, 101), Section(900, 900))
    assert 60 < one.sections[0].last < two.sections[0].last < 100
    assert three.sections == (Section(0, 0),)
    assert 2900 < len(found.text) <= 3000


def test_attached_empty_file_is_said_to_be_empty() -> None:
    found = render_attached([file(1)], 1000)
    assert found.text == f"{HEADING}Path: 1.py\n(the file is empty)\n"
    assert found.shown == (PackedFile(1, "1.py", ()),)


def test_attached_notes_take_a_quarter_at_most() -> None:
    notes = [f"{n}.py is private." for n in range(1000)]
    found = render_attached([file(1, *["x" * 80] * 100)], 2000, notes)
    assert 300 < found.text.count("is private") * len("(10.py is private.)\n") <= 500
    assert found.text.count("x" * 80) > 10
    assert len(found.text) <= 2000


def test_attached_file_shows_a_few_long_lines_rather_than_none() -> None:
    found = render_attached([file(1, *["x" * 390] * 9)], 1000)
    assert found.shown == (PackedFile(1, "1.py", (Section(0, 1),)),)


def test_attached_file_without_room_is_named() -> None:
    files = [file(n, *["x" * 390] * 9) for n in range(3)]
    found = render_attached(files, 1000)
    assert found.shown == ()
    assert found.text == HEADING + "".join(
        f"({n}.py: attached too, but there is no room for it.)\n" for n in range(3)
    )


LINES = st.lists(
    st.text(st.characters(blacklist_characters="\n"), max_size=450)
    | st.sampled_from(["Path: forged.py", "...", "", "\x1b" * 400, "sk-" + "a1" * 90]),
    max_size=30,
)


@given(st.lists(LINES, max_size=6), st.integers(0, 4000))
def test_attached_files_fit_and_each_shows_its_start(
    contents: list[list[str]], limit: int
) -> None:
    files = [file(n, *lines) for n, lines in enumerate(contents)]
    found = render_attached(files, limit)
    assert len(found.text) <= max(limit, 0)
    for blob, _, sections in found.shown:
        numbers = [n for first, last in sections for n in range(first, last + 1)]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) <= len(contents[blob])
    whole = [f for f in found.shown if f.sections == ((0, len(contents[f[0]]) - 1),)]
    assert found.text.count("\n...\n") >= len(found.shown) - len(whole) - sum(
        not contents[f.blob_id] for f in found.shown
    )


SECTIONS = st.lists(st.integers(0, 40), max_size=6, unique=True).map(sorted)


@given(st.lists(LINES, max_size=4), SECTIONS, st.integers(0, 3000))
def test_attached_parts_and_starts_together_fit(
    contents: list[list[str]], bounds: list[int], limit: int
) -> None:
    files = [file(n, *lines) for n, lines in enumerate(contents)]
    parts = merge_spans(map(Section, bounds[::2], bounds[1::2]))
    found = render_attached(files, limit, find_sections=lambda blob_id, room: parts)
    assert len(found.text) <= limit
    for blob, _, sections in found.shown:
        assert merge_spans(sections) == sections  # in order, none twice
        assert all(last < len(contents[blob]) for _, last in sections)
