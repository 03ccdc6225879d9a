"""A model's text is made to fit at the cursor."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.errors import UpstreamGarbled
from byok.core.events import Finish, FinishReason, TextDelta, ThinkingDelta
from byok.core.stage import drain
from byok.protocols.augment.completion import (
    MAX_CHARS,
    MAX_LINES,
    CompletionObject,
    Cursor,
    Cutter,
    IndentedBlock,
    OneLine,
    RepetitionRemover,
    ShownCompletions,
    brackets,
    without_suffix,
)
from byok.protocols.augment.remarks import FenceRemover
from byok.protocols.augment.reply_job import ReplyFacts
from tests.fakes.clock import check_linear
from tests.fakes.values import CUTS, cut, singles

CODE = st.text('ab ()\n{}"\t:', max_size=60)
AROUND = st.text('ab ()\n\r{}"', max_size=20)


def fitted(cursor: Cursor, *said: str, one_line: bool = False) -> str:
    """Feed a text until it is enough."""
    cutter = Cutter(cursor, FenceRemover(), one_line=one_line)
    for piece in said:
        if cutter.enough:
            break
        cutter.feed(piece)
    return cutter.text(whole=True)


@pytest.mark.parametrize(
    ("before", "after", "said", "found"),
    [
        pytest.param(
            "def f(x):\n    ", "\n", "```python\n    return x\n```\nIt returns x.",
            "return x", id="a fence, the indentation, remarks",
        ),
        pytest.param(
            "def fare(kind):\n    ret", "\n", "def fare(kind):\n    return 1\n",
            "urn 1", id="the lines above",
        ),
        pytest.param("f(", ")", "a, b)", "a, b", id="what follows"),
        pytest.param("f(", ")\nx", "g(a)\nmore", "g(a)", id="a bracket of its own"),
        pytest.param("a\r\n", "\r\nz", "b\nc", "b\r\nc", id="the file's line endings"),
        pytest.param("a\n", "\nz", "b\r\nc", "b\nc", id="not where there are others"),
        pytest.param("a\n    ", "b()", "c()\n    d()", "c()\n    ", id="a line before"),
    ],
)  # fmt: skip
def test_completion_cut_makes_a_text_fit(
    before: str, after: str, said: str, found: str
) -> None:
    assert fitted(Cursor(before, after), said) == found
    assert fitted(Cursor(before, after), *said) == found


def test_completion_cut_ends_an_endless_text() -> None:
    cutter = Cutter(Cursor("x = ", "\n"), FenceRemover())
    fed = 0
    while not cutter.enough:
        cutter.feed("y" * 130)
        fed += 130
    assert fed <= MAX_CHARS + 130
    assert cutter.text(whole=True) == "y" * MAX_CHARS


@given(AROUND, AROUND, CODE, CUTS, st.booleans())
def test_where_the_stream_is_cut_makes_no_difference(
    before: str, after: str, said: str, places: list[int], one_line: bool
) -> None:
    cursor = Cursor(before, after)
    whole = fitted(cursor, said, one_line=one_line)
    assert fitted(cursor, *cut(said, places), one_line=one_line) == whole
    assert fitted(cursor, *said, one_line=one_line) == whole


@given(AROUND, AROUND, CODE)
def test_cutting_adds_nothing_but_line_endings(
    before: str, after: str, said: str
) -> None:
    found = fitted(Cursor(before, after), said)
    assert found.replace("\r\n", "\n").replace("\r", "\n") in said
    if "\n" in before + after and "\r" not in before + after:
        assert "\r" not in found


# Where a completion ends


MORE = "\n\n\ndef other():\n    pass\n"


def block(before: str, after: str, said: str) -> tuple[str, bool]:
    """Return what is taken of a text after which more might have come."""
    extent = IndentedBlock(Cursor(before, after))
    extent.feed(said)
    return extent.text(whole=True), extent.enough


@pytest.mark.parametrize(
    ("before", "after", "said", "taken"),
    [
        pytest.param("def f(x):\n    ", "", f"return x{MORE}", "return x", id="body"),
        pytest.param(
            "def f(x):", "", "\n    a\n\n    b\nc\n", "\n    a\n\n    b",
            id="paragraphs inside",
        ),
        pytest.param("def f(x):\n", "", f"    a\n  {MORE}", "    a", id="column 0"),
        pytest.param(
            "    a()", "\n", "\n    b()\n\n    c()\n", "\n    b()", id="next statement"
        ),
        pytest.param(
            "    return a", "\n", f"{MORE}\n\nclass A:\n", MORE.rstrip(),
            id="next paragraph",
        ),
        pytest.param("  b();", "", "\n}\n\nc();\n", "\n}", id="the end of a block"),
        pytest.param("a\n    ", "\n", "\ndef b():\n", "", id="nothing here"),
        pytest.param(
            "namespace x {\n\n", "\n\n}\n", "int f() {\n  a();\n}\n\n}\n",
            "int f() {\n  a();\n}", id="a bracket of its own that looks alike",
        ),
        pytest.param(
            "x = ", "\n]\ny = 2\n", "[\n  1,\n]\ny = 2\n", "[\n  1,",
            id="a bracket that is there",
        ),
        pytest.param("f(\n", "\ng()\n", "  a\n)\n", "  a", id="not its place"),
        pytest.param("a(\n)", "\n)\n", "\nb\n)\n", "\nb", id="brackets below"),
        pytest.param("f(\n  a,\n  ", "", "b)\n  c\n", "b)", id="all is closed"),
        pytest.param(
            "x = [", "", "\n  1,\n  2,\n]\ny = 2\n", "\n  1,\n  2,\n]", id="closed"
        ),
        pytest.param(
            "if (a) {", "", "\n  b();\n} else {\n  c();\n}\nd();\n",
            "\n  b();\n} else {\n  c();\n}", id="else",
        ),
        pytest.param(
            "function f() {\n  ", "\n}\n", "return 1;\n}\n\nf();\n", "return 1;",
            id="a bracket of the outer block",
        ),
        pytest.param(
            "import os\n", "", "import re\n\nimport sys\nx = 1\n", "import re",
            id="paragraph",
        ),
        pytest.param(
            "    a()\n    ", "\n    return 1\n", "return 1\n    c()\n", "",
            id="the line below alone",
        ),
    ],
)  # fmt: skip
def test_a_block_ends_where_another_begins(
    before: str, after: str, said: str, taken: str
) -> None:
    assert block(before, after, said) == (taken, True)


def test_a_block_has_an_end_at_last() -> None:
    text, enough = block("", "", "x\n" * 100)
    assert enough
    assert text.count("x") == MAX_LINES


@pytest.mark.parametrize(
    ("again", "said", "taken", "enough"),
    [
        ("", "a, b\nc", "a, b", True),
        ("", "a, b", "a, b", False),
        ("", "\na", "", True),
        ("\n  ", "a\n  b", "a\n  ", True),
        ("\n  ", "a\n ", "a", False),
        ("\n  ", "a\nb", "a", True),
        ("\n", "a\n", "a\n", True),
    ],
)
def test_a_block_of_one_line_ends_with_its_line(
    again: str, said: str, taken: str, enough: bool
) -> None:
    extent = OneLine(again)
    extent.feed(said)
    assert (extent.text(whole=True), extent.enough) == (taken, enough)


# A cursor: its line, what stands around it, and brackets


@pytest.mark.parametrize(
    ("code", "counted"),
    [
        ("f(a, {", (0, 2)),
        (")]", (2, 0)),
        ('x = "(((" + (', (0, 1)),
        (r'"\")" (', (0, 1)),
        ("`)` ' ) '", (0, 0)),
        ('"(\n"(', (0, 2)),
        (r"\"(\" [", (0, 2)),
        (r"\(x, y) -> [", (0, 1)),
    ],
)
def test_cursor_counts_brackets_without_a_partner(
    code: str, counted: tuple[int, int]
) -> None:
    assert brackets(code) == counted


@given(st.text("()[]{}\"'`\\a\n", max_size=60))
def test_cursor_counts_no_bracket_twice(code: str) -> None:
    closing, opening = brackets(code)
    assert closing <= sum(map(code.count, ")]}"))
    assert opening <= sum(map(code.count, "([{"))


@pytest.mark.parametrize("piece", ['\\"', '\\"a\\":', "\\'", "\"'`", '"\\"'])
def test_cursor_reads_code_of_quotes_in_linear_time(piece: str) -> None:
    check_linear(lambda size: brackets(piece * size), 20_000)


# What a model says again: before the cursor, and behind it


DEF = "import os\n\ndef fare(kind):\n    if kind:\n        ret"
LETTERS = st.text("ab( )\n", max_size=12)


def new(before: str, *said: str) -> str:
    return "".join(drain(RepetitionRemover(Cursor(before, "")), said))


@pytest.mark.parametrize(
    ("before", "said", "left"),
    [
        pytest.param(DEF, "        return 1", "urn 1", id="its line"),
        pytest.param(DEF, "return 1", "urn 1", id="its line without indentation"),
        pytest.param("x = tot", "total", "al", id="the word that was begun"),
        pytest.param("x = tot", "tot", "tot", id="a word that is not longer"),
        pytest.param("x = t", "total", "total", id="a letter is no word"),
        pytest.param(
            DEF, "def fare(kind):\n    if kind:\n        return 1", "urn 1", id="lines"
        ),
        pytest.param("a\n    ", "    b", "b", id="the indentation"),
        pytest.param("a\n    ", "b", "b", id="no indentation"),
        pytest.param("f(", "(1, 2)", "(1, 2)", id="a bracket is no repetition"),
        pytest.param("a\n    // ", "    // b", "b", id="the mark of a comment"),
        pytest.param("a\n    # ", "# b", "b", id="the mark without indentation"),
        pytest.param("f(\n    *", "*b)", "*b)", id="a star is no repetition"),
        pytest.param("0,\n0,\n", "0,\n0,\n", "0,\n0,\n", id="rows of a table"),
    ],
)
def test_repeated_prefix_is_removed(before: str, said: str, left: str) -> None:
    assert new(before, said) == left
    assert new(before, *singles(said)) == left


@given(LETTERS, LETTERS, CUTS)
def test_repeated_text_any_slicing_gives_the_same(
    before: str, said: str, places: list[int]
) -> None:
    whole = new(before, said)
    assert new(before, *cut(said, places)) == whole
    assert said.endswith(whole)
    assert new(before, before.rpartition("\n")[2] + "zz").endswith("zz")


@pytest.mark.parametrize(
    ("text", "suffix", "left"),
    [
        ("a)", ")", "a"),
        ("g(x)", ")", "g(x)"),
        ("g(x))", ")", "g(x)"),
        ('b"', '"', "b"),
        ('"b"', '"]', '"b"'),
        ("x\n", "\ny", "x"),
        ("x\n    return x\n", "\n    return x\n", "x"),
        ("{\n  a\n}", "\n}\n", "{\n  a\n}"),
        ("", "x", ""),
    ],
)
def test_repeated_suffix_is_removed(text: str, suffix: str, left: str) -> None:
    assert without_suffix(text, suffix) == left


@given(st.text("ab\n", max_size=14), st.text("ab\n", max_size=14))
def test_repeated_suffix_without_brackets_is_the_longest(
    text: str, suffix: str
) -> None:
    taken = len(text) - len(without_suffix(text, suffix))
    ends = (n for n in range(len(text) + 1) if suffix[:n] == text[len(text) - n :])
    assert taken == max(ends)


# Typing along a prediction needs no other


BEFORE, AFTER, TEXT = "def f():\n    ", "\n", "return 1\n    # done"
LONG = "".join(f"line {n}\n" for n in range(200))


def shown(before: str = BEFORE, text: str = TEXT) -> ShownCompletions:
    kept = ShownCompletions()
    kept.store("k", Cursor(before, AFTER), text)
    return kept


@given(st.integers(0, len(TEXT) - 1))
def test_shown_completion_gives_the_rest_while_typing_along(typed: int) -> None:
    cursor = Cursor(BEFORE + TEXT[:typed], AFTER)
    assert shown().remaining("k", cursor) == TEXT[typed:]


def test_shown_completion_ends_with_other_typing() -> None:
    for before, after in (
        (BEFORE + "rex", AFTER),
        (BEFORE[:-1], AFTER),
        (BEFORE[1:], AFTER),
        ("", AFTER),
        (BEFORE, "x" + AFTER),
    ):
        assert shown().remaining("k", Cursor(before, after)) == ""
    assert shown().remaining("other", Cursor(BEFORE, AFTER)) == ""


def test_shown_completion_allows_a_window_that_loses_its_beginning() -> None:
    kept = shown(LONG)
    assert kept.remaining("k", Cursor((LONG + "return")[40:], AFTER)) == TEXT[6:]
    assert kept.remaining("k", Cursor((LONG + "return")[-100:], AFTER)) == ""


def test_shown_completion_allows_a_window_that_grows() -> None:
    assert shown(LONG).remaining("k", Cursor("x" + LONG, AFTER)) == ""


def test_shown_completions_of_the_newest_requests_are_kept() -> None:
    kept = ShownCompletions(most=2)
    for key in ("a", "b", "a", "c"):
        kept.store(key, Cursor("", ""), "x")
    assert [kept.remaining(key, Cursor("", "")) for key in "abc"] == ["x", "", "x"]


# The answer of a completion: one item or none, and what is told besides


CURSOR = Cursor("def f():\n    ", "\n")
REST = {
    "unknown_blob_names": ["b1"],
    "unknown_memory_names": ["b1"],
    "checkpoint_not_found": True,
    "suggested_prefix_char_count": 8000,
    "suggested_suffix_char_count": 4000,
    "completion_timeout_ms": 5000,
}
NOTHING = {"completion_items": [], "text": "", **REST}


def reply(*said: str) -> CompletionObject:
    facts = ReplyFacts("r-1", ("b1",), checkpoint_found=False)
    made = CompletionObject(Cutter(CURSOR, FenceRemover()), CURSOR, facts)
    assert not made.feed(ThinkingDelta("hm"))
    for text in said:
        assert not made.feed(TextDelta(text))
    return made


def item(text: str) -> dict[str, Any]:
    one = {"text": text, "suffix_replacement_text": "", "skipped_suffix": ""}
    return {"completion_items": [one], "text": text, **REST}


def test_completion_reply_is_one_item() -> None:
    made = reply("return", " 1")
    made.feed(Finish(FinishReason.LENGTH))
    assert list(made.flush()) == [item("return 1")]
    assert made.text == "return 1"


def test_completion_reply_cut_by_length_has_whole_lines() -> None:
    made = reply("return 1\n    # all p")
    made.feed(Finish(FinishReason.LENGTH))
    assert list(made.flush()) == [item("return 1")]


def test_completion_reply_of_a_failure_has_no_item() -> None:
    made = reply("return 1\n")
    assert made.fail_whole(UpstreamGarbled("no")) == NOTHING
    assert made.text == ""


def test_completion_reply_at_the_deadline_has_whole_lines() -> None:
    assert reply("return 1\n    #").in_time() == item("return 1")
    assert reply("return 1").in_time() == NOTHING
