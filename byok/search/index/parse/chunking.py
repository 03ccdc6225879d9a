"""Cuts a file into chunks at its definitions.

Sizes are those measured with the ranking (docs/reference/retrieval.md): chunks of about
1,600 characters; neighbours under 300 are joined, runs over 2,080 are split.
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

from byok.core.platform.memory import lacks_memory
from byok.search.index.parse.queries import QUERIES
from byok.search.index.parse.references import REFERENCES
from byok.search.index.types import Span

_TARGET = 1600
_LONGEST = 2080
_SHORTEST = 300
_FEW_LINES = 8
_MARGIN = 4  # lines at either end of a run where it is not split
# A line above a definition that belongs to it: comments, decorators, attributes.
_LEADS = re.compile(
    r"\s*(?://|/\*|\*|--|;|%|\(\*|\{-|@\w|\[\w|"
    r"#(?!\s*(?:include|define|if|ifdef|ifndef|elif|else|endif|pragma|undef)\b))"
)
# How comments and docstrings of several lines end and begin.
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


def cut(
    lines: Sequence[str], definitions: Sequence["Definition"], *, prose: bool
) -> list[Span]:
    """Return spans that cover every line once, in order; linear in the text.

    `definitions` are sorted. Without any, the text is cut at blank lines, and `prose`
    at its headings too.
    """
    if not lines:
        return []
    if definitions:
        points = _points_of_code(lines, definitions)
    else:
        points = _points_of_text(lines, prose=prose)
    offsets = [0, *accumulate(len(line) + 1 for line in lines)]
    runs = _runs(points, len(lines))
    return list(_join_short(_split(runs, lines, offsets), offsets))


def _points_of_code(
    lines: Sequence[str], definitions: Sequence["Definition"]
) -> list[int]:
    points = {0}
    previous = decorated = -1
    for definition in definitions:
        first = min(definition.first_line, len(lines) - 1)
        if definition.kind == _DECORATED:
            decorated = definition.last_line
        elif definition.last_line == decorated:
            continue  # cut where its decorators begin
        if first > previous:
            points.add(_first_line_of(lines, first, previous))
            previous = first
        if definition.last_line > first:
            points.add(definition.last_line + 1)
    return sorted(points)


def _first_line_of(lines: Sequence[str], first: int, previous: int) -> int:
    """Return the line where what belongs to the definition at `first` begins.

    It lies behind `previous`, so no line is looked at for two definitions.
    """
    at = first
    searching = True
    while at - 1 > previous:
        opener = _opener(lines[at - 1]) if searching else None
        start = None
        if opener is not None:
            above = range(at - 1, previous, -1)
            start = next((n for n in above if opener.search(lines[n])), None)
            searching = start is not None
        if start is not None and _indent(lines[start]) == _indent(lines[first]):
            at = start
        elif _LEADS.match(lines[at - 1]):
            at -= 1
        else:
            return at
    return at


def _opener(line: str) -> re.Pattern[str] | None:
    """Return what the comment begins with that ends with this line."""
    text = line.rstrip()
    return next((start for end, start in _BLOCKS.items() if text.endswith(end)), None)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _points_of_text(lines: Sequence[str], *, prose: bool) -> list[int]:
    points = [0]
    blank = fenced = False
    for number, line in enumerate(lines):
        if prose and _FENCE.match(line):
            fenced = not fenced
        if not line or line.isspace():
            blank = True
            continue
        if blank or (prose and not fenced and _HEADING.match(line)):
            points.append(number)
        blank = False
    return points


def _runs(points: Sequence[int], end: int) -> Iterator[tuple[int, int]]:
    """Pair the points to runs of lines, the second number exclusive."""
    first = 0
    for point in points:
        if first < point < end:
            yield first, point
            first = point
    yield first, end


def _split(
    runs: Iterable[tuple[int, int]], lines: Sequence[str], offsets: Sequence[int]
) -> Iterator[tuple[int, int]]:
    for first, end in runs:
        while offsets[end] - offsets[first] > _LONGEST and end - first > _FEW_LINES:
            middle = _middle(first, end, lines, offsets)
            yield first, middle
            first = middle
        yield first, end


def _middle(first: int, end: int, lines: Sequence[str], offsets: Sequence[int]) -> int:
    """Return where a long run is split: behind the last blank line that fits."""
    lowest = first + _MARGIN
    fits = bisect_right(offsets, offsets[first] + _TARGET, first, end) - 1
    highest = max(lowest, min(fits, end - _MARGIN))
    for line in range(highest, lowest, -1):
        if not lines[line - 1].strip():
            return line
    return highest


def _join_short(
    runs: Iterable[tuple[int, int]], offsets: Sequence[int]
) -> Iterator[Span]:
    """Join a run to the one before if one of them is short and both fit a chunk."""
    start, stop = next(iter(runs := iter(runs)))
    for first, end in runs:
        before = offsets[stop] - offsets[start]
        chars = offsets[end] - offsets[first]
        if before + chars > _TARGET or min(before, chars) >= _SHORTEST:
            yield Span(start, stop - 1, before)
            start = first
        stop = end
    yield Span(start, stop - 1, offsets[stop] - offsets[start])


# Finds the definitions in a text, and what it refers to, with tree-sitter.
#
# For worker processes only: some inputs keep a parser busy for minutes. It asks now and
# then whether it shall go on, but not everything in it does; the rest is ended with its
# process (`worker.py`). Trees can be as deep as their text is long, so there is no
# recursion.


_DECLARATOR_DEPTH = 8
_SCRIPT = re.compile(rb"<script\b([^>]{0,500}+)>", re.I)
_SCRIPT_END = re.compile(rb"</script", re.I)
_TYPED = re.compile(rb"""lang\s*=\s*["']?(?:ts|tsx|typescript)\b""")
_SECTION = re.compile(rb"^<(template|style|script)\b", re.M)
_COMPONENTS = ("vue", "svelte")
# A parser that can be cancelled reads its text in parts, also for each predicate of a
# query. That doubles the time of languages with predicates, so only for large texts.
# The binding never frees a part, and scanners go back: Scala's to every line, Python's
# over all lines of a comment. So parts are small, and one read again is the same
# object: 17 files with long comments took the whole memory of a process.
_PART = 128
_LARGE = 64 * 1024
_ASKS = 8  # it looks at the clock each time that it has asked so often


class ParserTooSlow(Exception):
    """The parser was cancelled: it took more processor time than it may."""


# A line, counted from 0, and the name that is called or used there as a type (USED), or
# that a class or type extends or implements (BASE). A plain tuple: there are so many.
Reference: TypeAlias = tuple[int, bytes]
USED, BASE = b"u", b"b"


class Definition(NamedTuple):
    """A definition's lines, both inclusive, counted from 0; its kind of node."""

    first_line: int
    last_line: int
    kind: str
    name: str | None


class Outline(NamedTuple):
    """What a text defines, outer definitions before inner ones, and refers to."""

    definitions: list[Definition]
    references: list[Reference]


def outline(text: bytes, language: str, deadline: float = math.inf) -> Outline:
    """Return the definitions and references in a text, each in the order of lines.

    Lines are counted by line feeds alone. Without a grammar or a query for the language
    there are none. `deadline` is in seconds of `process_time`.

    Raises:
        ParserTooSlow: the deadline has passed.
    """
    if language in _COMPONENTS:
        return _in_component(text, deadline)
    if language not in QUERIES or (grammar := _grammar(language)) is None:
        return Outline([], [])
    parser, query = grammar
    if len(text) > _LARGE or "(#" not in QUERIES[language]:
        tree = _parse(parser, text, deadline)
    else:
        tree = parser.parse(text)
    found = set()
    used: list[tuple[Node, bytes]] = []
    defined = set()
    for _, captures in QueryCursor(query).matches(tree.root_node):
        if "u" in captures:
            used.append((captures["u"][0], USED))
        elif "b" in captures:
            used.append((captures["b"][0], BASE))
        else:
            node = captures["d"][0]
            names = captures.get("name")
            name = _name(names[0], text) if names else None
            if names:
                defined.add(names[0].start_byte)
            first, last = node.start_point[0], node.end_point[0]
            found.add(Definition(first, last, node.type, name))
    references = {
        (node.start_point[0], kind + text[start : node.end_byte])
        for node, kind in used
        if (start := node.start_byte) not in defined  # `X` in `type X struct`
    }
    # The order of matches is not the same in every process.
    return Outline(sorted(found, key=_order), sorted(references))


def _parse(parser: Parser, text: bytes, deadline: float) -> Tree:
    """Parse a text until a deadline."""
    asked = 0
    parts: dict[int, bytes] = {}

    def read(offset: int, _: object) -> bytes:
        part = parts.get(offset)
        if part is None:
            part = parts[offset] = text[offset : offset + _PART]
        return part

    def is_late(offset: int, has_error: bool) -> bool:
        nonlocal asked
        asked += 1
        return asked % _ASKS == 0 and process_time() > deadline

    try:
        return parser.parse(read, progress_callback=is_late)
    except ValueError as error:
        parser.reset()  # it would go on with this text
        raise ParserTooSlow from error


def _order(one: Definition) -> tuple[int, int, str, str]:
    return one.first_line, -one.last_line, one.kind, one.name or ""


@cache
def _grammar(language: str) -> tuple[Parser, Query] | None:
    try:
        loaded = _load(language)
    except (ImportError, LookupError, ValueError) as error:
        if lacks_memory(error):  # the next process may have more
            raise MemoryError from error
        return None
    # One query for both: to walk the tree twice would take twice the time.
    query = Query(loaded, QUERIES[language] + REFERENCES.get(language, ""))
    return Parser(loaded), query


def _load(language: str) -> Language:
    if language != "tlaplus":
        from tree_sitter_language_pack import get_language

        return get_language(language)  # type: ignore[arg-type]
    import tree_sitter_tlaplus

    with warnings.catch_warnings():  # it hands over a number, the old way
        warnings.simplefilter("ignore", DeprecationWarning)
        return Language(tree_sitter_tlaplus.language())


def _name(node: Node, text: bytes) -> str:
    """Return the name in a declarator: that of `(*f(int))[2]` is `f`."""
    for _ in range(_DECLARATOR_DEPTH):
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type == "parenthesized_declarator":
            inner = node.named_child(0)
        if inner is None:
            break
        node = inner
    return text[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _in_component(text: bytes, deadline: float) -> Outline:
    """Return the sections of a Vue or Svelte file, and the outline of its scripts."""
    # All but the scripts is made blank, so that their lines keep their numbers.
    parts: list[bytes] = []
    typed, end = False, 0
    while script := _SCRIPT.search(text, end):
        closing = _SCRIPT_END.search(text, script.end())
        if closing is None:
            break
        parts.append(b"\n" * text.count(b"\n", end, script.end()))
        parts.append(text[script.end() : closing.start()])
        typed = typed or _TYPED.search(script[1]) is not None
        end = closing.start()
    language = "typescript" if typed else "javascript"
    inner = outline(b"".join(parts), language, deadline)
    line, end = 0, 0
    sections = []
    for section in _SECTION.finditer(text):
        line += text.count(b"\n", end, section.start())
        end = section.start()
        sections.append(Definition(line, line, section[1].decode(), None))
    found = sorted([*sections, *inner.definitions], key=_order)
    return inner._replace(definitions=found)
