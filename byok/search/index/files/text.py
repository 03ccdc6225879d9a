"""Decodes files to text, or says why a file is not text."""

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from byok.search.index.files.languages import LANGUAGE_OF
from byok.search.index.types import SkipReason

# Jupyter notebooks: extracts the sources of cells, with their lines in the file.
#
# Outputs are skipped: they are large, and nobody searches for them. Line numbers are
# those of the JSON file, as an editor shows them.


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


_LOOKED_AT = 8192
_MEAN_LINE = 400
_MINIFIED_FROM = 20_000
_DATA_LINE = 2_000  # such as a picture inside of code
_USUAL_LINES = 25  # for each of those
_FOREIGN_SHARE = 0.3
# The marks of UTF-32 begin like those of UTF-16, so they come first.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b\b")) + b"\x7f"
_ASCII = bytes(range(128))
_RETURNS = re.compile(r"\r\n?")
_LINE_ENDS = re.compile(r"\r\n?|\n")


def decode(content: bytes, path: str = "") -> str | SkipReason:
    """Return the text, without a byte order mark and with line feeds only.

    Without a mark it is UTF-8, or an old one-byte encoding if it looks like prose or
    code in one. Lines of over 400 characters in the mean are not for people; a few very
    long ones among many others do not count, nor do the pictures of a notebook.
    """
    text = _decode(content)
    if isinstance(text, SkipReason):
        return text
    if "\r" in text:
        text = _RETURNS.sub("\n", text)
    if _is_minified(text) and not is_notebook(path):
        return SkipReason.MINIFIED
    return text


def split_lines(text: str) -> list[str]:
    """Return the lines as an editor counts them, without their ends.

    CR LF, LF and a lone CR end a line and nothing else does. The empty line behind a
    final line end is left out.
    """
    if "\r" in text:
        text = _RETURNS.sub("\n", text)
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def lines_in(content: bytes, path: str) -> list[str] | SkipReason:
    """Return the lines of a file."""
    text = decode(content, path)
    return text if isinstance(text, SkipReason) else split_lines(text)


def line_starts(content: bytes) -> list[int]:
    """Return where each line begins, and where the last one ends, in code points.

    Counted as clients do, in what the bytes say and not in what `decode` makes of it:
    CR LF counts two, a byte order mark one.
    """
    text = _decode(content)
    if isinstance(text, SkipReason):
        return []
    first = int(any(content.startswith(mark) for mark, _ in _MARKS))
    starts = [first, *(first + end.end() for end in _LINE_ENDS.finditer(text))]
    if starts[-1] < first + len(text):
        starts.append(first + len(text))
    return starts


def _is_minified(text: str) -> bool:
    most = _MEAN_LINE * (text.count("\n") + 1)
    if len(text) <= max(most, _MINIFIED_FROM):
        return False
    lines = [len(line) for line in text.split("\n")]
    usual = [length for length in lines if length <= _DATA_LINE]
    too_few = len(usual) < _USUAL_LINES * (len(lines) - len(usual))
    return too_few or sum(usual) > _MEAN_LINE * len(usual)


def _decode(content: bytes) -> str | SkipReason:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return _decode_marked(content[len(mark) :], encoding)
    if b"\0" in content[:_LOOKED_AT]:
        return SkipReason.BINARY
    try:
        return content.decode()
    except UnicodeDecodeError:
        return _one_byte(content)


def _decode_marked(content: bytes, encoding: str) -> str | SkipReason:
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        return SkipReason.ENCODING
    return SkipReason.BINARY if "\0" in text[:_LOOKED_AT] else text


def _one_byte(content: bytes) -> str | SkipReason:
    """Decode what is mostly ASCII; letters of other scripts come out as wrong ones."""
    if len(content.translate(None, _CONTROLS)) < len(content):
        return SkipReason.ENCODING
    if len(content.translate(None, _ASCII)) > len(content) * _FOREIGN_SHARE:
        return SkipReason.ENCODING
    try:
        return content.decode("cp1252")
    except UnicodeDecodeError:
        return content.decode("latin-1")
