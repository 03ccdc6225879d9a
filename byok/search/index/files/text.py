"""Decodes files to text, or tells why a file is not text; reads notebooks.

Of Jupyter notebooks only the sources of cells are read: outputs are large, and nobody
searches for them. Line numbers are those of the JSON file, as an editor shows them.
"""

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from byok.search.index.files.languages import LANGUAGE_OF
from byok.search.index.types import SkipReason

_JSON_SYMBOL = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,\n]')
_LINE_END_RUN = re.compile(r"[\r\n]+")
_SOURCE_KEYS = ("source", "input")  # the second one in formats up to 3
_TEXT_CELLS = ("code", "markdown", "heading")
_DEFAULT_LANGUAGE = "python"
_ALIASES = {"ipython": "python", "c++": "cpp", "c#": "csharp", "f#": "fsharp"}
_LANGUAGES = frozenset(LANGUAGE_OF.values())
_loads = json.loads  # noqa: TID251 - outputs contain NaN, which stricter parsers refuse
_NUL_CHECK_BYTES = 8192
_MAX_MEAN_LINE = 400
_MIN_MINIFIED_CHARS = 20_000
_MAX_CODE_LINE = 2_000  # longer lines are data, such as a picture
_MIN_USUAL_LINES = 25  # for each longer line
_MAX_FOREIGN_SHARE = 0.3
# Those of UTF-32 begin like those of UTF-16, so they come first.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b\b")) + b"\x7f"
_ASCII = bytes(range(128))
_CARRIAGE_RETURN = re.compile(r"\r\n?")
_LINE_ENDS = re.compile(r"\r\n?|\n")


def decode(content: bytes, path: str = "") -> str | SkipReason:
    """Return the text, without a byte order mark and with line feeds only.

    Without a mark the encoding is UTF-8, or an old one-byte encoding if it looks like
    prose or code in one. A text whose lines have more than 400 characters on average is
    minified. A few very long lines among many others do not count, and neither do the
    pictures of a notebook.
    """
    text = _decode(content)
    if isinstance(text, SkipReason):
        return text
    if "\r" in text:
        text = _CARRIAGE_RETURN.sub("\n", text)
    if _is_minified(text) and not is_notebook(path):
        return SkipReason.MINIFIED
    return text


def split_lines(text: str) -> list[str]:
    """Return the lines as an editor counts them, without their ends.

    Only CR LF, LF and a lone CR end a line. The empty line after a final line end is
    left out.
    """
    if "\r" in text:
        text = _CARRIAGE_RETURN.sub("\n", text)
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def lines_in(content: bytes, path: str) -> list[str] | SkipReason:
    """Return the lines of a file."""
    text = decode(content, path)
    return text if isinstance(text, SkipReason) else split_lines(text)


def line_starts(content: bytes) -> list[int]:
    """Return the start of each line, and the end of the last one, in code points.

    They are counted as clients do, in the original text and not that of `decode`: CR LF
    counts two, a byte order mark one.
    """
    text = _decode(content)
    if isinstance(text, SkipReason):
        return []
    first = int(any(content.startswith(mark) for mark, _ in _BYTE_ORDER_MARKS))
    starts = [first, *(first + end.end() for end in _LINE_ENDS.finditer(text))]
    if starts[-1] < first + len(text):
        starts.append(first + len(text))
    return starts


def _is_minified(text: str) -> bool:
    limit = _MAX_MEAN_LINE * (text.count("\n") + 1)
    if len(text) <= max(limit, _MIN_MINIFIED_CHARS):
        return False
    lines = [len(line) for line in text.split("\n")]
    usual = [length for length in lines if length <= _MAX_CODE_LINE]
    too_few = len(usual) < _MIN_USUAL_LINES * (len(lines) - len(usual))
    return too_few or sum(usual) > _MAX_MEAN_LINE * len(usual)


def _decode(content: bytes) -> str | SkipReason:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            try:
                text = content[len(mark) :].decode(encoding)
            except UnicodeDecodeError:
                return SkipReason.ENCODING
            return SkipReason.BINARY if "\0" in text[:_NUL_CHECK_BYTES] else text
    if b"\0" in content[:_NUL_CHECK_BYTES]:
        return SkipReason.BINARY
    try:
        return content.decode()
    except UnicodeDecodeError:
        return _decode_one_byte(content)


def _decode_one_byte(content: bytes) -> str | SkipReason:
    """Decode a text that is mostly ASCII; other scripts become wrong letters."""
    if len(content.translate(None, _CONTROLS)) < len(content):
        return SkipReason.ENCODING
    if len(content.translate(None, _ASCII)) > len(content) * _MAX_FOREIGN_SHARE:
        return SkipReason.ENCODING
    try:
        return content.decode("cp1252")
    except UnicodeDecodeError:
        return content.decode("latin-1")


class Cell(NamedTuple):
    """The source of a cell: its first line in the file, and its text."""

    first: int
    text: str
    is_code: bool


class Notebook(NamedTuple):
    """The cells in their order, and the grammar of their code or None."""

    language: str | None
    cells: list[Cell]


def is_notebook(path: str) -> bool:
    """Tell whether a path is that of a notebook."""
    return path.lower().endswith(".ipynb")


def read_notebook(text: str) -> Notebook | None:
    """Return the sources of a notebook; None if the text is no notebook."""
    try:
        document = _loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or not {"cells", "worksheets"} & document.keys():
        return None
    return Notebook(_language(document.get("metadata")), list(_cells(text)))


def sources_alone(lines: list[str]) -> list[str]:
    """Return the lines of a notebook, with empty ones in place of all but sources."""
    notebook = read_notebook("\n".join(lines)) if len(lines) > 1 else None
    sources = [""] * len(lines)
    for cell in notebook.cells if notebook else ():
        last = cell.first + cell.text.count("\n")
        sources[cell.first : last] = lines[cell.first : last]
    return sources


def _language(metadata: object) -> str | None:
    info = _mapping(_mapping(metadata).get("language_info"))
    kernel = _mapping(_mapping(metadata).get("kernelspec"))
    language = info.get("name") or kernel.get("language") or _DEFAULT_LANGUAGE
    name = str(language).lower()
    name = _ALIASES.get(name, name)
    return name if name in _LANGUAGES else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


class _Frame:
    """An open object or list of the JSON; of a cell also its kind and source lines."""

    __slots__ = ("is_object", "key", "kind", "lines")

    def __init__(self, *, is_object: bool) -> None:
        self.is_object = is_object
        self.key: str | None = None
        self.kind = ""
        self.lines: dict[int, str] = {}


def _cells(text: str) -> Iterator[Cell]:
    """Yield the cells of a valid document, with lines, which parsers do not report."""
    stack: list[_Frame] = []
    line = 0
    for match in _JSON_SYMBOL.finditer(text):
        symbol = match[0]
        if symbol == "\n":
            line += 1
        elif symbol in "{[":
            stack.append(_Frame(is_object=symbol == "{"))
        elif symbol in "}]":
            closed = stack.pop()
            if closed.lines and closed.kind in _TEXT_CELLS:
                first, last = min(closed.lines), max(closed.lines)
                source = (
                    closed.lines.get(number, "").rstrip("\r\n")
                    for number in range(first, last + 1)
                )
                lines = (f"{_LINE_END_RUN.sub(' ', text)}\n" for text in source)
                yield Cell(first, "".join(lines), closed.kind == "code")
        elif symbol == ",":
            stack[-1].key = None
        elif symbol != ":":
            _record_string(stack, symbol, line)


def _record_string(stack: list[_Frame], string: str, line: int) -> None:
    """Record a string that is a key, or the kind or a source line of a cell."""
    top = stack[-1]
    if top.is_object and top.key is None:
        top.key = _loads(string)
        return
    depth = len(stack) - (1 if top.is_object else 2)
    if depth < 2 or stack[depth - 1].is_object or stack[depth - 2].key != "cells":
        return
    cell = stack[depth]
    if cell.key in _SOURCE_KEYS:
        cell.lines[line] = cell.lines.get(line, "") + _loads(string)
    elif cell.key == "cell_type":
        cell.kind = _loads(string)
