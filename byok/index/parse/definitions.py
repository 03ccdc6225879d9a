"""Finds the definitions in a text with tree-sitter.

For worker processes only: some inputs keep a parser busy for minutes. It asks now and
then whether it shall go on, but not everything in it does; the rest is ended with its
process (`worker.py`). Trees can be as deep as their text is long, so there is no
recursion.
"""

import math
import re
import warnings
from functools import cache
from time import process_time
from typing import NamedTuple

from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree

from byok.index.parse.queries import QUERIES
from byok.platform.memory import lacks_memory

_DECLARATOR_DEPTH = 8
_SCRIPT = re.compile(rb"<script\b([^>]{0,500}+)>", re.I)
_SCRIPT_END = re.compile(rb"</script", re.I)
_TYPED = re.compile(rb"""lang\s*=\s*["']?(?:ts|tsx|typescript)\b""")
_SECTION = re.compile(rb"^<(template|style|script)\b", re.M)
_COMPONENTS = ("vue", "svelte")
# A parser that can be cancelled reads its text in parts, also for each predicate of a
# query. That doubles the time of languages with predicates, so only for large texts.
_PART = 16 * 1024
_LARGE = 64 * 1024
_ASKS = 8  # it looks at the clock each time that it has asked so often


class ParserTooSlow(Exception):
    """The parser was cancelled: it took more processor time than it may."""


class Definition(NamedTuple):
    """A definition's lines, both inclusive, counted from 0; its kind of node."""

    first_line: int
    last_line: int
    kind: str
    name: str | None


def definitions(
    text: bytes, language: str, deadline: float = math.inf
) -> list[Definition]:
    """Return the definitions in a text, outer ones before inner ones.

    Lines are counted by line feeds alone. Without a grammar or a query for the language
    there are none. `deadline` is in seconds of `process_time`.

    Raises:
        ParserTooSlow: the deadline has passed.
    """
    if language in _COMPONENTS:
        return _in_component(text, deadline)
    if language not in QUERIES or (grammar := _grammar(language)) is None:
        return []
    parser, query = grammar
    if len(text) > _LARGE or "(#" not in QUERIES[language]:
        tree = _parse(parser, text, deadline)
    else:
        tree = parser.parse(text)
    found = set()
    for _, captures in QueryCursor(query).matches(tree.root_node):
        node = captures["d"][0]
        names = captures.get("name")
        name = _name(names[0], text) if names else None
        first, last = node.start_point[0], node.end_point[0]
        found.add(Definition(first, last, node.type, name))
    # The order of matches is not the same in every process.
    return sorted(found, key=_order)


def _parse(parser: Parser, text: bytes, deadline: float) -> Tree:
    """Parse a text until a deadline."""
    asked = 0

    def is_late(offset: int, has_error: bool) -> bool:
        nonlocal asked
        asked += 1
        return asked % _ASKS == 0 and process_time() > deadline

    try:
        return parser.parse(
            lambda offset, _: text[offset : offset + _PART], progress_callback=is_late
        )
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
    return Parser(loaded), Query(loaded, QUERIES[language])


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


def _in_component(text: bytes, deadline: float) -> list[Definition]:
    """Return the sections of a Vue or Svelte file and what its scripts define."""
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
    inner = definitions(b"".join(parts), language, deadline)
    line, end = 0, 0
    sections = []
    for section in _SECTION.finditer(text):
        line += text.count(b"\n", end, section.start())
        end = section.start()
        sections.append(Definition(line, line, section[1].decode(), None))
    return sorted([*sections, *inner], key=_order)
