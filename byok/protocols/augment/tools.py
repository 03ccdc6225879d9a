"""The tools that the client offers, and shorter descriptions for small models."""

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
_MAX_READ_CHARS = 8000  # of a description
_ELLIPSIS = "…"
_FENCE = re.compile(r"\s*(?:`{3}|~{3})")
_BLOCK = re.compile(r"\s*<(/?)examples?\b", re.IGNORECASE)
_HEADING = re.compile(r"\s{0,3}#{1,6}(?:\s+|\Z)")
_UNDERLINE = re.compile(r"\s{0,3}(?:={2,}|-{2,})\s*\Z")  # of a heading, or a rule
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s")
_LABEL = re.compile(
    r"\W{0,4}(?:for example|e\.g\.|examples?|(?:example |sample )?usage)\W{0,4}\Z",
    re.IGNORECASE,
)
# Full stops before a space, and the marks of scripts without spaces.
_SENTENCE_END = re.compile(r"[.!?]+[\"')\]*_`]{0,3}(?=\s|\Z)|[。！？]+[」』）]{0,3}")
_LAST_WORD = re.compile(r"\S*\Z")
_ABBREVIATION = re.compile(
    r"(?:[a-z]|[a-z]\.[a-z]|etc|vs|cf|approx|incl|resp|max|min|no|fig|\d{1,3})\.",
    re.IGNORECASE,
)
_MIN_PART = 4  # whole sentences must fill a quarter of the limit, else one is cut
_MAX_TOOL_CHARS, _MAX_PARAMETER_CHARS = 200, 100  # of descriptions
# Tools whose description defines the format of the input, so it is never shortened.
_UNCHANGED = frozenset({"apply_patch"})
_MAX_DEPTH = 24  # deeper levels of a schema stay unchanged
_CACHE_SIZE = 500  # tools; an agent sends the same ones at every step
_MAX_CACHED_BYTES = 16 * 1024  # of a definition
_UNNEEDED_KEYS = frozenset({"$comment", "examples", "title"})


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
    """Read the definitions; of equal names the first one counts.

    They are sorted, because clients change the order, and a prompt cache would miss.
    The client's own tools come first, because upstreams with a limit get only the first
    tools.
    """
    by_name: dict[str, ToolDefinition] = {}
    for tool in map(read, objects(body, "tool_definitions")):
        if tool is not None:
            by_name.setdefault(tool.name, tool)
    tools = [*by_name.values()][:MAX_TOOLS]
    return tuple(
        sorted(tools, key=lambda tool: (bool(tool.mcp_server_name), tool.name))
    )


def _schema(row: Json) -> dict[str, Any]:
    schema = mapping(row, "input_schema", "parameters")
    if not schema and (raw := text(row, "input_schema_json")):
        parsed = parse_object(raw)
        if parsed and not is_too_deep(parsed):
            schema = parsed
    if not schema:
        return {"type": "object", "properties": {}}
    return {**schema, "properties": mapping(schema, "properties"), "type": "object"}


def shorten(text: str, limit: int) -> str:
    """Return the first sentences of a text, at most `limit` characters.

    A text that fits stays unchanged. Otherwise headings, examples and everything after
    the first paragraph are dropped. A sentence that does not fit is cut after a word.
    """
    if len(text) <= limit:
        return text
    start = text[:_MAX_READ_CHARS]
    paragraph = " ".join((_first_paragraph(start) or start).split())
    if len(paragraph) <= limit:
        if not paragraph.endswith(":"):
            return paragraph
        ends = [*_ends(paragraph)]  # the last sentence only announces a list
        return paragraph[: ends[-1]] if ends else paragraph.rstrip(" :")
    ends = [end for end in _ends(paragraph[: limit + 1]) if end <= limit]
    if ends and ends[-1] * _MIN_PART >= limit:
        return paragraph[: ends[-1]]
    space = limit - len(_ELLIPSIS)
    words = paragraph[: space + 1].rpartition(" ")[0] or paragraph[:space]
    return words.rstrip(" ,;:-–") + _ELLIPSIS


def _first_paragraph(text: str) -> str:
    """Return the first paragraph that is no heading and no example, or a heading."""
    lines: list[str] = []
    heading = ""
    for line in _without_blocks(text):
        if _UNDERLINE.match(line):
            heading, lines = heading or " ".join(lines), []
        elif mark := _HEADING.match(line):
            heading = heading or line[mark.end() :].strip(" #")
        elif line.strip() and not (lines and _ITEM.match(line)):
            lines.append(line)
            continue
        if lines:
            break
    return " ".join(lines) or heading


def _without_blocks(text: str) -> Iterator[str]:
    """Yield the lines outside of examples, and a blank line for each other line."""
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
    """Yield the offset after each sentence."""
    for mark in _SENTENCE_END.finditer(text):
        end = mark.end()
        following = text[end : end + 2].lstrip()
        is_stop = mark[0] == "."
        word = _LAST_WORD.search(text, max(0, end - 12), end) if is_stop else None
        is_short = word is not None and _ABBREVIATION.fullmatch(word[0].lstrip("(["))
        if not (is_short or following[:1].islower()):
            yield end


def shorten_descriptions(
    tools: Sequence[ToolDefinition],
) -> tuple[tuple[ToolDefinition, ...], str]:
    """Return the tools with shorter descriptions, and a line for the log.

    The line is "" if nothing was shortened. Names, types and required keys stay
    unchanged. The same tools always give the same result.
    """
    shorter = [_shorten(tool) for tool in tools]
    count = sum(row.after < row.before for row in shorter)
    if not count:
        return (*tools,), ""
    before, after = sum(r.before for r in shorter), sum(r.after for r in shorter)
    noun = "tool description" if count == 1 else "tool descriptions"
    note = f"{count} {noun} shortened from {before:,} to {after:,} characters"
    return tuple(
        replace(tool, description=row.description, parameters=row.parameters)
        for tool, row in zip(tools, shorter, strict=True)
    ), note


class _ShortTool(NamedTuple):
    """Description and schema of a tool, and the characters of both, before and after.

    The schema is cached: do not modify it.
    """

    description: str
    parameters: Json
    before: int
    after: int


def _shorten(tool: ToolDefinition) -> _ShortTool:
    raw = write_json(tool.parameters)
    size = len(tool.description) + len(raw)
    if tool.name in _UNCHANGED:
        return _ShortTool(tool.description, tool.parameters, size, size)
    shorten_parts = _shorten_cached if size <= _MAX_CACHED_BYTES else _shorten_parts
    return shorten_parts(tool.description, raw)


def _shorten_parts(long: str, raw: bytes) -> _ShortTool:
    """Shorten a description, and those in a schema, which is given as JSON."""
    description = shorten(long, _MAX_TOOL_CHARS)
    parameters = _shorten_schema(parse_json(raw), _MAX_DEPTH)
    before = len(long) + len(raw.decode())
    after = len(description) + len(write_json(parameters).decode())
    return _ShortTool(description, parameters, before, after)


_shorten_cached = lru_cache(maxsize=_CACHE_SIZE)(_shorten_parts)


def _shorten_schema(schema: Json, levels: int) -> dict[str, Any]:
    """Return a copy of a schema with shorter descriptions; other parts are shared."""
    node = {key: value for key, value in schema.items() if key not in _UNNEEDED_KEYS}
    description = node.get("description")
    if isinstance(description, str):
        node["description"] = shorten(description, _MAX_PARAMETER_CHARS)
    if not levels:
        return node

    def inner(value: Any) -> Any:
        return _shorten_schema(value, levels - 1) if isinstance(value, dict) else value

    return change_inside(node, inner)
