"""Splits a file into chunks at its definitions, which tree-sitter finds.

The sizes were measured with the ranking (docs/reference/retrieval.md): chunks of about
1,600 characters; neighbours under 300 are joined, runs over 2,080 are split.

Parsing is for worker processes only: some inputs keep a parser busy for minutes. A
parser calls back from time to time to ask whether it shall go on, but not from
everywhere; otherwise its process is ended (`worker.py`). Trees can be as deep as their
text is long, so there is no recursion.
"""

import math
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from time import process_time
from typing import NamedTuple, TypeAlias

from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree

from byok.core.platform.process import lacks_memory
from byok.search.index.parse.queries import QUERIES
from byok.search.index.parse.references import REFERENCES
from byok.search.index.types import Span

_TARGET_CHARS = 1600
_MAX_CHARS = 2080
_MIN_CHARS = 300  # shorter chunks are joined
_MIN_LINES = 8  # shorter runs are not split
_MARGIN_LINES = 4  # at either end of a run, where it is not split
# Lines above a definition that belong to it: comments, decorators, attributes.
_LEADING_LINE = re.compile(
    r"\s*(?://|/\*|\*|--|;|%|\(\*|\{-|@\w|\[\w|"
    r"#(?!\s*(?:include|define|if|ifdef|ifndef|elif|else|endif|pragma|undef)\b))"
)
# The ends and beginnings of comments and docstrings of several lines.
_BLOCKS = {
    "*/": re.compile(r"/\*"),
    "*)": re.compile(r"\(\*"),
    "-}": re.compile(r"\{-"),
    "#>": re.compile(r"<#"),
    '"""': re.compile(r'"""\s*\S|\S\s*"""'),
}
_DECORATED = "decorated_definition"
_HEADING = re.compile(r"#{1,6}(?:\s|$)")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_DECLARATOR_DEPTH = 8
_SCRIPT = re.compile(rb"<script\b([^>]{0,500}+)>", re.I)
_SCRIPT_END = re.compile(rb"</script", re.I)
_TYPED = re.compile(rb"""lang\s*=\s*["']?(?:ts|tsx|typescript)\b""")
_SECTION = re.compile(rb"^<(template|style|script)\b", re.M)
_COMPONENTS = ("vue", "svelte")
# A parser that can be cancelled reads its text in parts, also for each predicate of a
# query. That doubles the time of languages with predicates, so these do so only for
# large texts. The binding never frees a part, and scanners go back: Scala's to every
# line, Python's over all lines of a comment. So parts are small, and a part that is
# read again is the same object: 17 files with long comments took the whole memory of a
# process.
_PART_BYTES = 128
_LARGE_BYTES = 64 * 1024
_CALLS_PER_CHECK = 8  # the clock is read at every eighth call of the parser
# A line, counted from 0, and a name with one of these prefixes: USED if it is called or
# used as a type there, BASE if a class or type extends or implements it. These are
# plain tuples because there are very many of them.
Reference: TypeAlias = tuple[int, bytes]
USED, BASE = b"u", b"b"


def cut(
    lines: Sequence[str], definitions: Sequence["Definition"], *, prose: bool
) -> list[Span]:
    """Return spans that cover every line once, in order; takes linear time.

    `definitions` are sorted. Without any, the text is split at blank lines, and `prose`
    also at its headings.
    """
    if not lines:
        return []
    if definitions:
        boundaries = _boundaries_of_code(lines, definitions)
    else:
        boundaries = _boundaries_of_text(lines, prose=prose)
    offsets = [0, *accumulate(len(line) + 1 for line in lines)]
    runs = _runs(boundaries, len(lines))
    return list(_join_short(_split(runs, lines, offsets), offsets))


def _boundaries_of_code(
    lines: Sequence[str], definitions: Sequence["Definition"]
) -> list[int]:
    boundaries = {0}
    previous = decorated = -1
    for definition in definitions:
        first = min(definition.first_line, len(lines) - 1)
        if definition.kind == _DECORATED:
            decorated = definition.last_line
        elif definition.last_line == decorated:
            continue  # its decorators are the boundary
        if first > previous:
            boundaries.add(_first_leading_line(lines, first, previous))
            previous = first
        if definition.last_line > first:
            boundaries.add(definition.last_line + 1)
    return sorted(boundaries)


def _first_leading_line(lines: Sequence[str], first: int, previous: int) -> int:
    """Return the first of the comments and decorators above the definition at `first`.

    It is below the line `previous`, so no line is read for two definitions.
    """
    line = first
    searching = True
    while line - 1 > previous:
        comment_start = _comment_start(lines[line - 1]) if searching else None
        start = None
        if comment_start is not None:
            above = range(line - 1, previous, -1)
            start = next((n for n in above if comment_start.search(lines[n])), None)
            searching = start is not None
        if start is not None and _indent(lines[start]) == _indent(lines[first]):
            line = start
        elif _LEADING_LINE.match(lines[line - 1]):
            line -= 1
        else:
            return line
    return line


def _comment_start(line: str) -> re.Pattern[str] | None:
    """Return how a comment or docstring that ends with this line begins, or None."""
    text = line.rstrip()
    return next((start for end, start in _BLOCKS.items() if text.endswith(end)), None)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _boundaries_of_text(lines: Sequence[str], *, prose: bool) -> list[int]:
    boundaries = [0]
    blank = fenced = False
    for number, line in enumerate(lines):
        if prose and _FENCE.match(line):
            fenced = not fenced
        if not line or line.isspace():
            blank = True
            continue
        if blank or (prose and not fenced and _HEADING.match(line)):
            boundaries.append(number)
        blank = False
    return boundaries


def _runs(boundaries: Sequence[int], end: int) -> Iterator[tuple[int, int]]:
    """Yield the runs of lines between boundaries: first line, end (exclusive)."""
    first = 0
    for boundary in boundaries:
        if first < boundary < end:
            yield first, boundary
            first = boundary
    yield first, end


def _split(
    runs: Iterable[tuple[int, int]], lines: Sequence[str], offsets: Sequence[int]
) -> Iterator[tuple[int, int]]:
    for first, end in runs:
        while offsets[end] - offsets[first] > _MAX_CHARS and end - first > _MIN_LINES:
            middle = _split_at(first, end, lines, offsets)
            yield first, middle
            first = middle
        yield first, end


def _split_at(
    first: int, end: int, lines: Sequence[str], offsets: Sequence[int]
) -> int:
    """Return the line before which a long run is split.

    It follows the last blank line that leaves a chunk of the usual size.
    """
    lowest = first + _MARGIN_LINES
    last_fit = bisect_right(offsets, offsets[first] + _TARGET_CHARS, first, end) - 1
    highest = max(lowest, min(last_fit, end - _MARGIN_LINES))
    for line in range(highest, lowest, -1):
        if not lines[line - 1].strip():
            return line
    return highest


def _join_short(
    runs: Iterable[tuple[int, int]], offsets: Sequence[int]
) -> Iterator[Span]:
    """Join a run to the previous one if either is short and both fit in a chunk."""
    start, stop = next(iter(runs := iter(runs)))
    for first, end in runs:
        previous = offsets[stop] - offsets[start]
        chars = offsets[end] - offsets[first]
        if previous + chars > _TARGET_CHARS or min(previous, chars) >= _MIN_CHARS:
            yield Span(start, stop - 1, previous)
            start = first
        stop = end
    yield Span(start, stop - 1, offsets[stop] - offsets[start])


class ParserTooSlow(Exception):
    """The parser was cancelled because its processor time was used up."""


class Definition(NamedTuple):
    """A definition: its lines, counted from 0 and inclusive, kind of node and name."""

    first_line: int
    last_line: int
    kind: str
    name: str | None


class Outline(NamedTuple):
    """The definitions of a text, outer before inner ones, and its references."""

    definitions: list[Definition]
    references: list[Reference]


def outline(text: bytes, language: str, deadline: float = math.inf) -> Outline:
    """Return the definitions and references in a text, each in the order of lines.

    Only line feeds end a line. Without a grammar or a query for the language there are
    none. `deadline` is in seconds of `process_time`.

    Raises:
        ParserTooSlow: the deadline has passed.
    """
    if language in _COMPONENTS:
        return _outline_component(text, deadline)
    if language not in QUERIES or (grammar := _grammar(language)) is None:
        return Outline([], [])
    parser, query = grammar
    if len(text) > _LARGE_BYTES or "(#" not in QUERIES[language]:
        tree = _parse(parser, text, deadline)
    else:
        tree = parser.parse(text)
    definitions = set()
    uses: list[tuple[Node, bytes]] = []
    defining = set()
    for _, captures in QueryCursor(query).matches(tree.root_node):
        if "u" in captures:
            uses.append((captures["u"][0], USED))
        elif "b" in captures:
            uses.append((captures["b"][0], BASE))
        else:
            node = captures["d"][0]
            names = captures.get("name")
            name = _declared_name(names[0], text) if names else None
            if names:
                defining.add(names[0].start_byte)
            first, last = node.start_point[0], node.end_point[0]
            definitions.add(Definition(first, last, node.type, name))
    references = {
        (node.start_point[0], kind + text[start : node.end_byte])
        for node, kind in uses
        if (start := node.start_byte) not in defining  # `X` in `type X struct`
    }
    # Sorted, because the order of matches differs between processes.
    return Outline(sorted(definitions, key=_sort_key), sorted(references))


def _parse(parser: Parser, text: bytes, deadline: float) -> Tree:
    """Parse a text until a deadline."""
    calls = 0
    parts: dict[int, bytes] = {}

    def read(offset: int, _: object) -> bytes:
        part = parts.get(offset)
        if part is None:
            part = parts[offset] = text[offset : offset + _PART_BYTES]
        return part

    def is_over(offset: int, has_error: bool) -> bool:
        nonlocal calls
        calls += 1
        return calls % _CALLS_PER_CHECK == 0 and process_time() > deadline

    try:
        return parser.parse(read, progress_callback=is_over)
    except ValueError as error:
        parser.reset()  # otherwise it would continue with this text
        raise ParserTooSlow from error


def _sort_key(definition: Definition) -> tuple[int, int, str, str]:
    first, last, kind, name = definition
    return first, -last, kind, name or ""


@cache
def _grammar(language: str) -> tuple[Parser, Query] | None:
    try:
        loaded = _load_grammar(language)
    except (ImportError, LookupError, ValueError) as error:
        if lacks_memory(error):  # the next process may have more
            raise MemoryError from error
        return None
    # One query for both, because a second walk of the tree would double the time.
    query = Query(loaded, QUERIES[language] + REFERENCES.get(language, ""))
    return Parser(loaded), query


def _load_grammar(language: str) -> Language:
    if language != "tlaplus":
        from tree_sitter_language_pack import get_language

        return get_language(language)  # type: ignore[arg-type]
    import tree_sitter_tlaplus

    with warnings.catch_warnings():  # it passes a number, which is deprecated
        warnings.simplefilter("ignore", DeprecationWarning)
        return Language(tree_sitter_tlaplus.language())


def _declared_name(node: Node, text: bytes) -> str:
    """Return the name in a declarator, such as `f` in `(*f(int))[2]`."""
    for _ in range(_DECLARATOR_DEPTH):
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type == "parenthesized_declarator":
            inner = node.named_child(0)
        if inner is None:
            break
        node = inner
    return text[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _outline_component(text: bytes, deadline: float) -> Outline:
    """Return the sections of a Vue or Svelte file, and the outline of its scripts."""
    # Everything but the scripts is replaced by blank lines, so that they keep their
    # line numbers.
    parts: list[bytes] = []
    is_typescript, end = False, 0
    while script := _SCRIPT.search(text, end):
        closing = _SCRIPT_END.search(text, script.end())
        if closing is None:
            break
        parts.append(b"\n" * text.count(b"\n", end, script.end()))
        parts.append(text[script.end() : closing.start()])
        is_typescript = is_typescript or _TYPED.search(script[1]) is not None
        end = closing.start()
    language = "typescript" if is_typescript else "javascript"
    inner = outline(b"".join(parts), language, deadline)
    line, end = 0, 0
    sections = []
    for section in _SECTION.finditer(text):
        line += text.count(b"\n", end, section.start())
        end = section.start()
        sections.append(Definition(line, line, section[1].decode(), None))
    definitions = sorted([*sections, *inner.definitions], key=_sort_key)
    return inner._replace(definitions=definitions)
