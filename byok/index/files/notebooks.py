"""Jupyter notebooks: extracts the sources of cells, with their lines in the file.

Outputs are skipped: they are large, and nobody searches for them. Line numbers are
those of the JSON file, as an editor shows them.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from byok.index.files.languages import LANGUAGE_OF

_PIECE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,\n]')
_ENDS = re.compile(r"[\r\n]+")
_SOURCES = ("source", "input")  # the second until format 3
_SHOWN = ("code", "markdown", "heading")
_USUAL = "python"
_CALLED = {"ipython": "python", "c++": "cpp", "c#": "csharp", "f#": "fsharp"}
_LANGUAGES = frozenset(LANGUAGE_OF.values())
_loads = json.loads  # noqa: TID251 - outputs hold NaN, which stricter ones refuse


class Cell(NamedTuple):
    """A source: the line of the file where it begins, and a line of text for each."""

    first: int
    text: str
    is_code: bool


class Notebook(NamedTuple):
    """The cells in their order, and the grammar of their code, if there is one."""

    language: str | None
    cells: list[Cell]


def is_notebook(path: str) -> bool:
    """Tell a notebook by its name."""
    return path.lower().endswith(".ipynb")


def read_notebook(text: str) -> Notebook | None:
    """Return what people wrote into a notebook; None if it is none."""
    try:
        whole = _loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(whole, dict) or not {"cells", "worksheets"} & whole.keys():
        return None
    return Notebook(_language(whole.get("metadata")), list(_cells(text)))


def sources_alone(lines: list[str]) -> list[str]:
    """Return the lines of a notebook, empty where they hold no source."""
    notebook = read_notebook("\n".join(lines)) if len(lines) > 1 else None
    kept = [""] * len(lines)
    for cell in notebook.cells if notebook else ():
        last = cell.first + cell.text.count("\n")
        kept[cell.first : last] = lines[cell.first : last]
    return kept


def _language(metadata: object) -> str | None:
    info = _mapping(_mapping(metadata).get("language_info"))
    kernel = _mapping(_mapping(metadata).get("kernelspec"))
    told = info.get("name") or kernel.get("language") or _USUAL
    name = str(told).lower()
    name = _CALLED.get(name, name)
    return name if name in _LANGUAGES else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


class _Frame:
    """An object or a list that is open, and what it says if it is a cell."""

    __slots__ = ("is_object", "key", "kind", "lines")

    def __init__(self, *, is_object: bool) -> None:
        self.is_object = is_object
        self.key: str | None = None
        self.kind = ""
        self.lines: dict[int, str] = {}


def _cells(text: str) -> Iterator[Cell]:
    """Go through the tokens of a valid document: no parser tells of lines."""
    stack: list[_Frame] = []
    line = 0
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece == "\n":
            line += 1
        elif piece in "{[":
            stack.append(_Frame(is_object=piece == "{"))
        elif piece in "}]":
            closed = stack.pop()
            if closed.lines and closed.kind in _SHOWN:
                yield _cell(closed)
        elif piece == ",":
            stack[-1].key = None
        elif piece != ":":
            _take(stack, piece, line)


def _take(stack: list[_Frame], string: str, line: int) -> None:
    """Note a string if it is a key, or says something of a cell."""
    top = stack[-1]
    if top.is_object and top.key is None:
        top.key = _loads(string)
        return
    at = len(stack) - (1 if top.is_object else 2)
    if at < 2 or stack[at - 1].is_object or stack[at - 2].key != "cells":
        return
    cell = stack[at]
    if cell.key in _SOURCES:
        cell.lines[line] = cell.lines.get(line, "") + _loads(string)
    elif cell.key == "cell_type":
        cell.kind = _loads(string)


def _cell(frame: _Frame) -> Cell:
    first, last = min(frame.lines), max(frame.lines)
    lines = (
        _ENDS.sub(" ", frame.lines.get(line, "").rstrip("\r\n"))
        for line in range(first, last + 1)
    )
    return Cell(first, "".join(f"{line}\n" for line in lines), frame.kind == "code")
