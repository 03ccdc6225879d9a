"""The tools that the client offers, their descriptions short enough for a model."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec.structs import replace

from byok.core.chat import Json, ToolDefinition
from byok.core.wire.json_body import is_too_deep, parse_json, write_json
from byok.core.wire.json_fields import parse_object
from byok.dialects.schemas import change_inside
from byok.protocols.augment.body import mapping, objects, text

MAX_TOOLS = 2000


def read_tool(row: Json) -> ToolDefinition | None:
    """Read one definition; None if it has no name."""
    inner = {**row, **mapping(row, "definition")}
    if not (name := text(inner, "name")):
        return None
    return ToolDefinition(
        name,
        text(inner, "description"),
        _schema(inner),
        text(inner, "mcp_server_name"),
        text(inner, "mcp_tool_name"),
    )


def read_tools(
    body: Json, read: Callable[[Json], ToolDefinition | None] = read_tool
) -> tuple[ToolDefinition, ...]:
    """Read the definitions; the first of equal names counts, nameless ones do not.

    They are sorted: clients change the order, and a prompt cache would miss. The
    client's own tools come first, as upstreams with a limit get only the first ones.
    """
    found: dict[str, ToolDefinition] = {}
    for tool in map(read, objects(body, "tool_definitions")):
        if tool is not None:
            found.setdefault(tool.name, tool)
    tools = [*found.values()][:MAX_TOOLS]
    return tuple(
        sorted(tools, key=lambda tool: (bool(tool.mcp_server_name), tool.name))
    )


def _schema(row: Json) -> dict[str, Any]:
    given = mapping(row, "input_schema", "parameters")
    if not given and (raw := text(row, "input_schema_json")):
        parsed = parse_object(raw)
        if parsed and not is_too_deep(parsed):
            given = parsed
    if not given:
        return {"type": "object", "properties": {}}
    return {**given, "properties": mapping(given, "properties"), "type": "object"}


# Shorten a description to the sentences at its beginning.


_READ = 8000  # characters of a description that are looked at
_CUT = "…"
_FENCE = re.compile(r"\s*(?:`{3}|~{3})")
_BLOCK = re.compile(r"\s*<(/?)examples?\b", re.IGNORECASE)
_HEADING = re.compile(r"\s{0,3}#{1,6}(?:\s+|\Z)")
_UNDERLINE = re.compile(r"\s{0,3}(?:={2,}|-{2,})\s*\Z")  # of a heading, or a rule
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s")
_LABEL = re.compile(
    r"\W{0,4}(?:for example|e\.g\.|examples?|(?:example |sample )?usage)\W{0,4}\Z",
    re.IGNORECASE,
)
# Points with a space behind them, and the marks of scripts without spaces.
_END = re.compile(r"[.!?]+[\"')\]*_`]{0,3}(?=\s|\Z)|[。！？]+[」』）]{0,3}")
_WORD = re.compile(r"\S*\Z")
_NO_END = re.compile(
    r"(?:[a-z]|[a-z]\.[a-z]|etc|vs|cf|approx|incl|resp|max|min|no|fig|\d{1,3})\.",
    re.IGNORECASE,
)
_LEAST = 4  # sentences that fill less than this part of the room say too little


def shorten(text: str, limit: int) -> str:
    """Return the first sentences of a text, at most `limit` characters.

    A text that fits stays as it is. Otherwise headings, examples and all behind the
    first paragraph go. A sentence that does not fit is cut behind a word.
    """
    if len(text) <= limit:
        return text
    found = _first_paragraph(text[:_READ])
    paragraph = " ".join((found or text[:_READ]).split())
    if len(paragraph) <= limit:
        return _without_lead(paragraph)
    ends = [end for end in _ends(paragraph[: limit + 1]) if end <= limit]
    if ends and ends[-1] * _LEAST >= limit:
        return paragraph[: ends[-1]]
    room = limit - len(_CUT)
    words = paragraph[: room + 1].rpartition(" ")[0] or paragraph[:room]
    return words.rstrip(" ,;:-–") + _CUT


def _first_paragraph(text: str) -> str:
    """Return the first paragraph that is no heading and no example, or a heading."""
    lines: list[str] = []
    heading = ""
    for line in _without_blocks(text):
        if _UNDERLINE.match(line):
            heading, lines = heading or " ".join(lines), []
        elif begun := _HEADING.match(line):
            heading = heading or line[begun.end() :].strip(" #")
        elif line.strip() and not (lines and _ITEM.match(line)):
            lines.append(line)
            continue
        if lines:
            break
    return " ".join(lines) or heading


def _without_blocks(text: str) -> Iterator[str]:
    """Give the lines outside of examples; a blank line stands for each of them."""
    fenced = tagged = labelled = False
    for line in text.splitlines():
        tag = _BLOCK.match(line)
        if _FENCE.match(line):
            fenced = not fenced
        elif fenced:
            continue
        elif tag:
            tagged = not tag[1] and "</" not in line
        elif tagged:
            continue
        elif _LABEL.match(line):
            labelled = True
        elif labelled and line.strip():
            continue
        else:
            labelled = False
            yield line
            continue
        yield ""


def _ends(text: str) -> Iterator[int]:
    """Give the offset behind each sentence."""
    for mark in _END.finditer(text):
        end = mark.end()
        rest = text[end : end + 2].lstrip()
        point = mark[0] == "."
        before = _WORD.search(text, max(0, end - 12), end) if point else None
        short = before is not None and _NO_END.fullmatch(before[0].lstrip("(["))
        if not (short or rest[:1].islower()):
            yield end


def _without_lead(paragraph: str) -> str:
    """Drop a last sentence that only announces a list."""
    if not paragraph.endswith(":"):
        return paragraph
    ends = [*_ends(paragraph)]
    return paragraph[: ends[-1]] if ends else paragraph.rstrip(" :")


# Shortens the descriptions of tools, for models that get lost in long ones.


_TOOL, _PARAMETER = 200, 100  # most characters of a description
# Its description is the format of its input: without it no call would be right.
_WHOLE = frozenset({"apply_patch"})
_DEEPEST = 24  # levels of a schema; deeper ones stay as they are
_KEPT = 500  # tools; an agent sends the same ones at every step
_LARGEST = 16 * 1024  # bytes of a definition that is kept
_ADORNMENT = frozenset({"$comment", "examples", "title"})


def shorten_descriptions(
    tools: Sequence[ToolDefinition],
) -> tuple[tuple[ToolDefinition, ...], str]:
    """Return the tools with shorter descriptions, and what was left out for the log.

    The second is "" if nothing was. Names, types and what is required stay as they are.
    The same tools always give the same result; the given ones are not changed.
    """
    found = [_shorten(tool) for tool in tools]
    count = sum(one.after < one.before for one in found)
    if not count:
        return (*tools,), ""
    before, after = sum(one.before for one in found), sum(one.after for one in found)
    noun = "tool description" if count == 1 else "tool descriptions"
    note = f"{count} {noun} shortened from {before:,} to {after:,} characters"
    return tuple(
        replace(tool, description=one.description, parameters=one.parameters)
        for tool, one in zip(tools, found, strict=True)
    ), note


class _Short(NamedTuple):
    """Description and schema of a tool, and the characters of both, before and after.

    The schema is cached: do not modify it.
    """

    description: str
    parameters: Json
    before: int
    after: int


def _shorten(tool: ToolDefinition) -> _Short:
    raw = write_json(tool.parameters)
    size = len(tool.description) + len(raw)
    if tool.name in _WHOLE:
        return _Short(tool.description, tool.parameters, size, size)
    shorten_parts = _shorten_again if size <= _LARGEST else _shorten_parts
    return shorten_parts(tool.description, raw)


def _shorten_parts(long: str, raw: bytes) -> _Short:
    """Shorten a description, and those in a schema, which is given as JSON."""
    description = shorten(long, _TOOL)
    parameters = _shorten_schema(parse_json(raw), _DEEPEST)
    before = len(long) + len(raw.decode())
    after = len(description) + len(write_json(parameters).decode())
    return _Short(description, parameters, before, after)


_shorten_again = lru_cache(maxsize=_KEPT)(_shorten_parts)


def _shorten_schema(schema: Json, levels: int) -> dict[str, Any]:
    """Return a copy of a schema with shorter descriptions, sharing what stays."""
    node = {key: value for key, value in schema.items() if key not in _ADORNMENT}
    said = node.get("description")
    if isinstance(said, str):
        node["description"] = shorten(said, _PARAMETER)
    if not levels:
        return node

    def inner(value: Any) -> Any:
        return _shorten_schema(value, levels - 1) if isinstance(value, dict) else value

    return change_inside(node, inner)
