"""Notebooks: which texts people wrote, and on which lines of the file."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.search.index.files.text import Cell, read_notebook, sources_alone

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
