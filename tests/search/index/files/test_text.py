"""Bytes to text: encodings, line ends, and what is no text."""

import codecs
import json
import random
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from byok.search.index.files.text import (
    Cell,
    decode,
    line_starts,
    lines_in,
    read_notebook,
    sources_alone,
    split_lines,
)
from byok.search.index.types import SkipReason

TEXT = "first = 'é'\n\nsecond\n"


@pytest.mark.case("B75")
@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1", "cp1252"]
)
def test_text_has_a_mark_of_its_encoding_or_an_old_western_one(encoding: str) -> None:
    assert decode(TEXT.encode(encoding)) == TEXT
    assert decode(b"a line of text \x81 \xe9") == "a line of text \x81 é"


@pytest.mark.case("B75")
@pytest.mark.parametrize("content", [b"a\0b", b"x" * 8191 + b"\0", b"\xff\xfea\0\0\0"])
def test_a_nul_near_the_front_alone_is_no_text(content: bytes) -> None:
    assert decode(content) is SkipReason.BINARY
    assert decode(b"x" * 8192 + b"\0") == "x" * 8192 + "\0"


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfea",  # half a letter
        b"\xff\xfe\x00\xd8",  # half a pair
        b"\xef\xbb\xbf\xe9 ",
        b"text \x01\x02 \xe9",
        bytes(range(128, 256)),
        random.Random(3).randbytes(20_000).replace(b"\0", b""),
    ],
)
def test_text_that_fits_no_encoding_is_none(content: bytes) -> None:
    assert decode(content) is SkipReason.ENCODING


@pytest.mark.case("B75")
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\nb", ["a", "b"]),
        (b"a\nb\n", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\rc", ["a", "b", "c"]),
        (b"a\n\r\n\rb", ["a", "", "", "b"]),
        (b"\xef\xbb\xbfa\nb", ["a", "b"]),
        ("a\u2028b\x0bc\x0cd\x85".encode(), ["a\u2028b\x0bc\x0cd\x85"]),
        (b"\n", [""]),
        (b"", []),
    ],
)
def test_text_lines_are_those_of_an_editor(content: bytes, lines: list[str]) -> None:
    text = decode(content)
    assert isinstance(text, str)
    assert split_lines(text) == lines
    assert split_lines(content.decode("utf-8-sig")) == lines


def test_minified_text_has_long_lines_in_the_mean_beyond_20_000_characters() -> None:
    assert decode(b"x" * 20_001) is SkipReason.MINIFIED
    assert decode(b"x" * 20_000) == "x" * 20_000
    assert decode((b"x" * 399 + b"\n") * 100) == ("x" * 399 + "\n") * 100
    assert decode((b"x" * 410 + b"\r") * 100) is SkipReason.MINIFIED


@pytest.mark.parametrize(
    ("code", "data", "found"),
    [(100, 1, True), (100, 4, True), (100, 5, False), (24, 1, False), (0, 1, False)],
)
def test_minified_text_is_not_a_few_endless_lines_among_code(
    code: int, data: int, found: bool
) -> None:
    text = "def helper(x): ...\n" * code + ("x" * 120_000 + "\n") * data
    assert (decode(text[:-1].encode()) == text[:-1]) is found


def test_minified_text_is_not_a_notebook_with_images() -> None:
    content = (b"x" * 50_000 + b"\n") * 3
    assert lines_in(content, "a/B.ipynb") == ["x" * 50_000] * 3
    assert lines_in(content, "a/b.py") is SkipReason.MINIFIED


@pytest.mark.parametrize(
    ("content", "starts"),
    [
        (b"", [0]),
        (b"a\nbc", [0, 2, 4]),
        (b"a\nbc\n", [0, 2, 5]),
        (b"a\r\nb\rc\n\r\n", [0, 3, 5, 7, 9]),
        (b"\xef\xbb\xbfa\nb", [1, 3, 4]),
        ("é😀\n北".encode(), [0, 3, 4]),
        ("\ufeffé\n".encode("utf-16-le"), [1, 3]),
        (b"caf\xe9 au lait\nb", [0, 13, 14]),
        (b"a\0b", []),
    ],
)
def test_lines_begin_where_the_clients_text_has_them(
    content: bytes, starts: list[int]
) -> None:
    assert line_starts(content) == starts


PIECES = st.sampled_from(
    ["\n", "\r\n", "\r", "\ufeff", "😀", "e\u0301", "\u2028", "\x0b", "\x85", "x", " "]
)


@given(
    st.text() | st.lists(PIECES).map("".join),
    st.sampled_from(["utf-8", "utf-16-le", "utf-16-be"]),
    st.booleans(),
)
@example("\0a", "utf-16-le", True)
@example("\0a", "utf-16-be", True)
def test_every_run_of_lines_is_found_again_in_the_clients_text(
    text: str, encoding: str, mark: bool
) -> None:
    if mark or encoding != "utf-8":
        text = "\ufeff" + text
    content = text.encode(encoding)
    assume(not content.startswith(codecs.BOM_UTF32_LE))  # it is no UTF-16 then
    lines = lines_in(content, "a")
    if isinstance(lines, SkipReason):
        assert "\0" in text
        return
    starts = line_starts(content)
    assert len(starts) == len(lines) + 1
    assert text[starts[0] :].encode(encoding) in content
    assert starts[-1] == len(text)
    for first in range(len(lines)):
        for last in range(first, len(lines)):
            part = text[starts[first] : starts[last + 1]]
            assert split_lines(part) == lines[first : last + 1]


# Notebooks: which texts people wrote, and on which lines of the file


SOURCES = st.lists(
    st.text(max_size=6).map(lambda line: f"{line}\n"), min_size=1, max_size=4
)

CELLS = st.fixed_dictionaries(
    {
        "cell_type": st.sampled_from(["code", "markdown"]),
        "source": SOURCES,
        "outputs": st.lists(st.fixed_dictionaries({"source": SOURCES}), max_size=2),
    }
)


def notebook(*cells: dict[str, Any], **metadata: Any) -> str:
    return json.dumps({"cells": cells, "metadata": metadata}, indent=1)


def cells(text: str) -> list[Cell]:
    found = read_notebook(text)
    assert found is not None
    return found.cells


@given(st.lists(CELLS, max_size=4), st.sampled_from([0, 1, 4]), st.booleans())
def test_notebook_source_lines_keep_their_line_of_the_file(
    made: list[dict[str, Any]], indent: int, ascii_only: bool
) -> None:
    text = json.dumps({"cells": made}, indent=indent, ensure_ascii=ascii_only)
    lines = text.split("\n")
    found = cells(text)
    assert [cell.is_code for cell in found] == [c["cell_type"] == "code" for c in made]
    for cell, given_cell in zip(found, made, strict=True):
        length = len(given_cell["source"])
        assert cell.text.count("\n") == length
        shown = lines[cell.first : cell.first + length]
        written = [line.strip().removesuffix(",") for line in shown]
        assert list(map(json.loads, written)) == given_cell["source"]


def test_notebook_pieces_on_one_line_are_joined() -> None:
    text = '{"cells": [{"cell_type": "code",\n"source": ["a\\n", "b\\n"]}]}'
    assert cells(text) == [Cell(1, "a b\n", is_code=True)]


def test_notebook_cells_of_format_3_are_found() -> None:
    cell = {"cell_type": "code", "input": ["x = 1\n"], "outputs": []}
    text = json.dumps({"worksheets": [{"cells": [cell]}]}, indent=1)
    assert [found.text for found in cells(text)] == ["x = 1\n"]


@pytest.mark.parametrize(
    ("metadata", "language"),
    [
        ({}, "python"),
        ({"language_info": {"name": "R"}}, "r"),
        ({"kernelspec": {"language": "julia"}}, "julia"),
        ({"language_info": {"name": "C++"}}, "cpp"),
        ({"language_info": {"name": "brainfuck"}}, None),
        ({"language_info": 5, "kernelspec": []}, "python"),
    ],
)
def test_notebook_language_is_that_of_the_kernel(
    metadata: dict[str, Any], language: str | None
) -> None:
    found = read_notebook(notebook(**metadata))
    assert found is not None
    assert found.language == language


@given(st.recursive(st.none() | st.text() | st.integers(), st.lists, max_leaves=9))
def test_notebook_with_odd_values_is_read(odd: Any) -> None:
    cell = {"cell_type": odd, "source": odd, "cells": [odd]}
    text = json.dumps({"cells": [odd, cell], "metadata": odd})
    assert read_notebook(text) is not None


@given(st.lists(CELLS, max_size=3))
def test_notebook_view_keeps_only_source_lines(made: list[dict[str, Any]]) -> None:
    lines = json.dumps({"cells": made}, indent=1).split("\n")
    kept = sources_alone(lines)
    shown = [line.strip().removesuffix(",") for line in kept if line]
    assert list(map(json.loads, shown)) == [t for cell in made for t in cell["source"]]
    assert all(new in ("", old) for new, old in zip(kept, lines, strict=True))


@pytest.mark.parametrize("lines", [[], ["x", "y"], ['{"cells": []}'], ["{", "}"]])
def test_of_what_is_no_notebook_nothing_is_left(lines: list[str]) -> None:
    assert sources_alone(lines) == [""] * len(lines)
