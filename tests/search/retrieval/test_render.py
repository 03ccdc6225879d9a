"""Answers have the layout that clients know, and never more than was asked for."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from byok.core.escapes import escape
from byok.search.retrieval.pack import PackedAnswer, PackedFile, Section
from byok.search.retrieval.render import render

HEADING = "The following code sections were retrieved:\n"


def file(path: str, *sections: tuple[int, int], blob: int = 0) -> PackedFile:
    return PackedFile(blob, path, tuple(Section(*section) for section in sections))


def test_render_layout_is_the_one_that_clients_know() -> None:
    contents = {
        "src/auth/login.py": [
            "from .store import find_user",
            *[""] * 39,
            "def login():",
            "    return find_user()",
        ],
        "src/auth/store.py": [*[""] * 6, "def find_user():"],
    }
    packed = PackedAnswer(
        (
            file("src/auth/login.py", (0, 0), (40, 41)),
            file("src/auth/store.py", (6, 6)),
        ),
        ("src/api.py", "README.md"),
    )
    answer = render(packed, lambda f: contents[f.path], 20_000, ["One note."])
    assert answer.text == (
        "The following code sections were retrieved:\n"
        "Path: src/auth/login.py\n"
        "     1\tfrom .store import find_user\n"
        "...\n"
        "    41\tdef login():\n"
        "    42\t    return find_user()\n"
        "Path: src/auth/store.py\n"
        "     7\tdef find_user():\n"
        "\n"
        "Other files that may be relevant:\n"
        "Path: src/api.py\n"
        "Path: README.md\n"
        "\n"
        "One note.\n"
    )
    assert answer.shown == packed.files


def test_a_section_says_what_it_is_in_unless_one_line_is_all_of_a_file() -> None:
    lines = ["class A:", "    def f(self):", "        1", "        2", "        3"]
    sections = (file("a", (2, 2), (4, 4)), file("b", (3, 3)), file("c", (1, 2)))
    answer = render(PackedAnswer(sections, ()), lambda _: lines, 500)
    assert answer.text == (
        f"{HEADING}"
        "Path: a\n     1\tclass A:\n     2\t    def f(self):\n...\n"
        "     3\t        1\n...\n     5\t        3\n"
        "Path: b\n     4\t        2\n"
        "Path: c\n     1\tclass A:\n...\n     2\t    def f(self):\n     3\t        1\n"
    )


def test_render_notes_a_file_that_can_no_longer_be_read() -> None:
    packed = PackedAnswer((file("gone.py", (0, 1)), file("here.py", (0, 0))), ())
    answer = render(packed, lambda f: ["x"] if f.path == "here.py" else None, 500)
    assert answer.shown == (packed.files[1],)
    assert answer.text == (
        f"{HEADING}Path: here.py\n     1\tx\n\n"
        "gone.py matches too, but can no longer be read.\n"
    )
    answer = render(packed, lambda _: None, 500)
    assert answer.text == (
        "No code was found for this request (no matches).\n\n"
        "2 more files match, but can no longer be read.\n"
    )


@pytest.mark.case("B74")
def test_render_truncates_a_long_line_with_a_mark() -> None:
    answer = render(
        PackedAnswer((file("a", (0, 0)),), ()), lambda _: ["x" * 40_000_000], 900
    )
    shown = "x" * 400 + " [39,999,600 characters cut]"
    assert answer.text == f"{HEADING}Path: a\n     1\t{shown}\n"


@pytest.mark.case("B73")
def test_render_masks_secrets() -> None:
    key = "-----BEGIN PRIVATE KEY-----"
    lines = ["key: sk-abcdef1234567890abcdef", key, "A" * 64, "A" * 64]
    packed = PackedAnswer((file("notes.txt", (0, 0), (3, 3)),), ())
    text = render(packed, lambda _: lines, 500).text
    assert text == (
        f"{HEADING}Path: notes.txt\n     1\tkey: [redacted]\n...\n     4\t[redacted]\n"
    )


@pytest.mark.case("B54")
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("-rf", "-rf"),
        ("--pre=sh", "--pre=sh"),
        ("new\nline", "new\\nline"),
        ("a\r\x1b[31m", "a\\r\\x1b[31m"),
        ("caf\udce9.py", "caf\\xe9.py"),
        ("a\u202eb\u2028c", "a\\u202eb\\u2028c"),
        ("a\u200b.py", "a\\u200b.py"),
        ("a\U000e0041", "a\\U000e0041"),
        ("a\ud800", "a\\ud800"),
        ("x" * 255, "x" * 255),
        ("ünï cödé.py", "ünï cödé.py"),
    ],
)
@pytest.mark.case("B117")
def test_render_escapes_odd_names_on_one_line(name: str, shown: str) -> None:
    packed = PackedAnswer((file(name, (0, 0)),), (name,))
    answer = render(packed, lambda _: ["x"], 2000)
    lines = answer.text.split("\n")
    assert lines.count(f"Path: {shown}") == 2
    assert len(lines) == 7
    answer.text.encode()


@pytest.mark.case("B117")
def test_render_escapes_invisible_characters_in_code() -> None:
    packed = PackedAnswer((file("a.py", (0, 0)),), ())
    line = "if admin\u202e and\u200b ok:\x1b[2J\t# \U000e0068\U000e0069"
    answer = render(packed, lambda _: [line], 2000)
    shown = "if admin\\u202e and\\u200b ok:\\x1b[2J\t# \\U000e0068\\U000e0069"
    assert f"     1\t{shown}\n" in answer.text


def test_render_cuts_a_section_that_does_not_fit_at_a_line() -> None:
    lines = [f"line {n}" for n in range(100)]
    packed = PackedAnswer((file("a.py", (0, 9), (20, 60)), file("b.py", (0, 9))), ())
    answer = render(packed, lambda _: lines, 400)
    assert "b.py" not in answer.text  # there is not even room for its name
    assert 380 < len(answer.text) <= 400
    [(_, _, (whole, cut))] = answer.shown
    assert (whole, cut.first) == (Section(0, 9), 20)
    assert answer.text.endswith(f"    {cut.last + 1}\tline {cut.last}\n...\n")


def test_render_names_files_of_which_nothing_fits_the_best_first() -> None:
    packed = PackedAnswer((file("a.py", (0, 9)), file("b.py", (0, 9))), ("c.py",))
    answer = render(packed, lambda _: ["x" * 60] * 10, 300, ["One note."])
    assert answer.text == (
        "Files that may be relevant:\nPath: a.py\nPath: b.py\nPath: c.py\n\nOne note.\n"
    )
    assert answer.shown == ()


def test_render_without_room_for_a_path_is_a_sentence() -> None:
    packed = PackedAnswer((file("a" * 200, (0, 9)),), ())
    text = render(packed, lambda _: ["x" * 60] * 10, 100).text
    assert (
        text == "Code was found, but none of it fits into an answer of this length.\n"
    )


def test_render_notes_and_paths_leave_room_for_code() -> None:
    packed = PackedAnswer((file("a.py", (0, 9)),), tuple(f"{n}.py" for n in range(500)))
    text = render(packed, lambda _: ["code"] * 10, 600, ["n" * 100] * 50).text
    assert text.count("code\n") == 10
    assert "Path: 0.py" in text
    assert "nnn" in text
    assert len(text) <= 600


LINES = st.lists(
    st.text(st.characters(blacklist_characters="\n"), max_size=500)
    | st.sampled_from(["Path: forged.py", "...", "", "Other files:", "x" * 5000]),
    max_size=30,
)
SECTIONS = st.lists(st.integers(0, 40), max_size=8, unique=True).map(sorted)


@example([("", [], []), ("", [0, 1], [""])], [], [], 600)
@given(
    st.lists(st.tuples(st.text(max_size=30), SECTIONS, st.none() | LINES), max_size=5),
    st.lists(st.text(max_size=30), max_size=5),
    st.lists(st.text(max_size=50), max_size=3),
    st.integers(0, 4000),
)
def test_render_fits_and_shows_only_lines_of_files_with_their_numbers(
    contents: list[tuple[str, list[int], list[str] | None]],
    others: list[str],
    notes: list[str],
    limit: int,
) -> None:
    files = tuple(
        file(path, *zip(bounds[::2], bounds[1::2], strict=False), blob=n)
        for n, (path, bounds, _) in enumerate(contents)
    )
    answer = render(
        PackedAnswer(files, tuple(others)),
        lambda f: contents[f.blob_id][2],
        limit,
        notes,
    )
    assert len(answer.text) <= limit
    answer.text.encode()
    if limit < 600:
        return  # the heading itself may be cut
    # A file without a line to show is not named here, be its path another's, too.
    here = iter(
        [
            f
            for f in files
            if any(n < len(contents[f.blob_id][2] or ()) for n, _ in f.sections)
        ]
    )
    current: list[str] = []
    wanted: set[int] = set()
    for line in answer.text.partition("\n\n")[0].split("\n"):
        if row := re.fullmatch(r" *(\d+)\t(.*)", line):
            number = int(row[1])
            assert len(row[1]) == 6 or len(line.partition("\t")[0]) == 6
            assert number - 1 in wanted
            original = escape(current[number - 1])
            shown = row[2].partition(" [")[0]
            assert original.startswith(shown) or "[redacted]" in shown
        elif line.startswith("Path: ") and line != "Path: forged.py":
            named = next((f for f in here if f"Path: {escape(f.path)}" == line), None)
            if named is not None:
                current = contents[named.blob_id][2] or []
                wanted = {
                    n for first, last in named.sections for n in range(first, last + 1)
                }
