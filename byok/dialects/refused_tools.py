"""Refusals of tools: which tool is meant, how many are accepted."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from byok.chat import ToolDefinition
from byok.dialects.schemas.common import write_schema
from byok.wire.json_body import write_json

_MOST_TOOLS = 128  # if a refusal names no number
_NUMBER = re.compile(r"(?<![\w.-])\d{1,6}(?![\w-]|\.\d)")  # no part of a model's name
_INDEX = re.compile(
    r"tools(?:\[\d+\]\.function_declarations)?(?:\[|\.)(\d+)\b"
    r"(?!\]\.function_declarations)"  # Gemini's list of all tools
)
_NAME = re.compile(r"['\"`]([\w-]{1,64})['\"`]|\b(?:tool|function) ([\w-]{1,64})")
_PATH = re.compile(r"[Aa]t path '(properties[^']+)'")
_DESCRIPTION = re.compile(
    r"tools\W\d+\S*\.description\b.*(?:maximum length|at most|<=) (\d+)"
)


def find_tool(text: str, tools: Mapping[str, ToolDefinition]) -> ToolDefinition | None:
    """Return the tool that a refusal names, by name, index or path in its schema.

    `tools` are in the order in which they were sent, by the names that were sent.
    """
    return next(_match_tools(text, tools), None)


def find_limit(text: str, offered: int) -> int:
    """Return how many tools are accepted, 0 where that is not below `offered`.

    Of several numbers in the text the largest below `offered` counts: if it is still
    too many, the next refusal names a lower one.
    """
    named = map(int, _NUMBER.findall(text))
    most = max((n for n in named if 0 < n < offered), default=_MOST_TOOLS)
    return most if most < offered else 0


def find_description_limit(text: str) -> int:
    """Return the longest description that is accepted, 0 where none is named."""
    found = _DESCRIPTION.search(text)
    return int(found[1]) if found else 0


def _match_tools(
    text: str, tools: Mapping[str, ToolDefinition]
) -> Iterator[ToolDefinition]:
    if place := _INDEX.search(text):
        yield from [*tools.values()][int(place[1]) :][:1]
    if at := _PATH.search(text):
        there = [tool for tool in tools.values() if _leads(_sent_schema(tool), at[1])]
        yield from there if len(there) == 1 else ()
    for names in _NAME.findall(text):
        yield from (tools[name] for name in names if name in tools)


def _sent_schema(tool: ToolDefinition) -> Any:
    """Return a tool's schema as APIs like OpenAI's get it."""
    raw = write_json({**tool.parameters, "type": "object"})
    return write_schema(raw, narrow=False, plain_keys=False)


def _leads(schema: Any, path: str) -> bool:
    """Tell whether a path exists in a schema: Moonshot names only that."""
    for step in path.split("."):
        schema = schema.get(step) if isinstance(schema, dict) else None
    return schema is not None
