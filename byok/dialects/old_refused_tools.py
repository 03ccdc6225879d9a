"""Refusals of tools: which tool is meant, how many are accepted."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from byok.chat import Json
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


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as it was sent; `version` changes with its definition."""

    name: str
    schema: Any
    version: str


def version_of(tool: Json) -> str:
    """Return a digest of a tool's definition."""
    return hashlib.blake2b(write_json(tool), digest_size=8).hexdigest()


def find_tool(text: str, tools: Sequence[OfferedTool]) -> OfferedTool | None:
    """Return the tool that a refusal names, by name, index or path in its schema."""
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


def _match_tools(text: str, tools: Sequence[OfferedTool]) -> Iterator[OfferedTool]:
    if place := _INDEX.search(text):
        yield from tools[int(place[1]) :][:1]
    if at := _PATH.search(text):
        there = [tool for tool in tools if _leads(tool.schema, at[1])]
        yield from there if len(there) == 1 else ()
    by_name = {tool.name: tool for tool in tools}
    for names in _NAME.findall(text):
        yield from (by_name[name] for name in names if name in by_name)


def _leads(schema: Any, path: str) -> bool:
    """Tell whether a path exists in a schema: Moonshot names only that."""
    for step in path.split("."):
        schema = schema.get(step) if isinstance(schema, dict) else None
    return schema is not None
