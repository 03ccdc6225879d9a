"""What a model is shown of the best files, and the numbers in its answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.search.index.types import Kind
from byok.search.retrieval.query import parse_query
from byok.search.retrieval.rank import RankedFile, Reasons
from byok.search.retrieval.rerank import MOST_NUMBERS, read_numbers, shuffle, write_list

KEY = "sk-proj-" + "Ab3dEf6hIj9lMn2pQr5tUv8x" * 2


def file(path: str, blob: int = 1) -> RankedFile:
    return RankedFile(blob, path, Kind.CODE, 1.0, (), Reasons(0, 0, 0, 1, 0))


def listed(
    question: str, *files: tuple[str, list[list[str]]], path: str = ""
) -> list[str]:
    chunks = dict(files)
    ranked = [file(path) for path in chunks]
    text = write_list(question, parse_query(question), ranked, lambda f: chunks[f.path])
    return text.split("\n")


def test_list_shows_path_defined_names_and_the_line_closest_to_the_question() -> None:
    body = [
        "class Jar:",
        "    def store_cookie(self, cookie):",
        "        # cookies are written to the disk here",
        "        local = 1",
    ]
    others = ["export const MAX_AGE = 3;", "function hidden() {"]
    assert listed(
        "where are cookies\nwritten to disk",
        ("src/jar.py", [body, others]),
        ("empty.py", []),
    ) == [
        "Question: where are cookies written to disk",
        "",
        "1 src/jar.py | Jar store_cookie MAX_AGE hidden | "
        "# cookies are written to the disk here",
        "2 empty.py |  | ",
        "",
    ]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("def feed_lion():", "feed_lion"),
        ("    async def feed_lion(self):", "feed_lion"),
        ("export default async function feedLion() {", "feedLion"),
        ("func (c *Cage) Feed(lion Lion) error {", "Feed"),
        ("pub(crate) unsafe fn feed(lion: &Lion) {", "feed"),
        ("    public static final class Cage<T> {", "Cage"),
        ("export const LIONS = 3", "LIONS"),
        ("    const local = 3", ""),
        ("this class feeds lions of type Cat", ""),
        ("# class names are", ""),
        ("if (type in cage) {", ""),
        ("x" * 500 + " def late():", ""),
    ],
)
def test_list_names_what_is_defined(line: str, name: str) -> None:
    rows = listed("cookie", ("a.py", [["", line]]))
    assert rows[2].split(" | ")[1] == name


@pytest.mark.case("B125")
@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (f'api_key = "{KEY}"', 'api_key = "[redacted]"'),
        (f"cookie {KEY} more", "cookie [redacted] more"),
        ("cookie\x1b[31m\u202egood", r"cookie\x1b[31m\u202egood"),
        ("cookie \ud800 \udc80", r"cookie \ud800 \x80"),
        ("cookie | 2 | first", "cookie ¦ 2 ¦ first"),
        ("cookie " * 200_000, ("cookie " * 20)[:80]),
        ("x" * 2**20 + " cookie", "x" * 80),
    ],
    ids=[
        "a key by its name",
        "a key by its form",
        "controls",
        "surrogates",
        "separators",
        "a line of 1 MiB",
        "one word of 1 MiB",
    ],
)
def test_list_hides_keys_and_shows_what_nobody_would_see(line: str, shown: str) -> None:
    from byok.search.retrieval.masking import mask_lines

    rows = listed("cookie", ("a.py", [mask_lines([line], path="a.py")]))
    assert rows[2] == f"1 a.py |  | {shown}"


@pytest.mark.case("B125")
def test_list_masks_and_cuts_paths_and_the_question() -> None:
    long = "d/" * 200 + "cookies.py"
    rows = listed(f"cookie {KEY}\n" * 99, (f"a\n7 {KEY}", []), (long, []))
    assert KEY not in "".join(rows)
    assert rows[0].startswith("Question: cookie [redacted] cookie [redacted]")
    assert len(rows) == 5
    assert rows[2].startswith(r"1 a\n7 [redacted] | ")
    assert rows[3].startswith("2 ") and "/cookies.py | " in rows[3]
    assert max(map(len, rows)) < 700


@pytest.mark.case("B125")
def test_list_is_small_whatever_files_contain() -> None:
    wide = [["def " + "n" * 40 + str(n) + " " * 300 for n in range(500)]] * 3
    rows = listed("q " * 5000, *((f"{n}/" * 200, wide) for n in range(20)))
    assert len("\n".join(rows)) < 20 * 230 + 700


@given(st.lists(st.text(), max_size=3))
def test_list_has_a_line_for_each_file(lines: list[str]) -> None:
    rows = listed("cookie", ("a.py", [lines]), ("b.py", [lines, lines]))
    assert len(rows) == 5
    assert [row[:7] for row in rows[2:4]] == ["1 a.py ", "2 b.py "]


def test_order_of_the_list_depends_on_question_and_paths_alone() -> None:
    files = [file(f"{n}.py") for n in range(20)]
    order = shuffle("cookies", files)
    assert sorted(order) == list(range(20))
    assert order != list(range(20))
    assert shuffle("cookies", [file(f"{n}.py", blob=7) for n in range(20)]) == order
    assert shuffle("other", files) != order
    assert shuffle("\ud800", [file("\udc80")]) == [0]


@pytest.mark.parametrize(
    ("answer", "places"),
    [
        ("3 7 1", [2, 6, 0]),
        ("3, 7 and 1.", [2, 6, 0]),
        ("[3] (7) *1*\n", [2, 6, 0]),
        ("3 3 7 3", [2, 6]),
        ("0 21 99 100 3 -4", [2]),
        ("1.5 v2 3px a-4 4-a 007 12345", []),
        ("1 2 3 4 5 6 7", [0, 1, 2, 3, 4]),
        ("I cannot say.", []),
        ("", []),
        ("٣ ３ ²", []),
    ],
)
def test_numbers_of_the_list_are_read_and_nothing_else(
    answer: str, places: list[int]
) -> None:
    assert read_numbers(answer, 20) == places


@given(st.text(), st.integers(0, 30))
def test_numbers_are_always_places_of_the_list(answer: str, count: int) -> None:
    places = read_numbers(answer, count)
    assert len({*places}) == len(places) <= MOST_NUMBERS
    assert all(0 <= place < count for place in places)
