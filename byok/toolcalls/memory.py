"""Fill missing text fields of memory tools with the user's own words.

A memory tool has "memory" or "remember" in its name. Its usual required fields (title,
content, context) repeat what the user just said, so they can be derived instead of
failing the call. No other field is ever filled in.
"""

from collections.abc import Mapping
from typing import Any

from byok.chat import Json
from byok.toolcalls.coerce import missing_required
from byok.toolcalls.repair import Supply

_TITLE = frozenset({"title", "name", "summary"})
_CONTENT = frozenset({"memory", "content", "text"})
_CONTEXT = frozenset({"context", "scenario"})
_TITLE_LENGTH = 80


def is_memory_tool(name: str) -> bool:
    """Tell by its name whether a tool stores memories."""
    lowered = name.lower()
    return "memory" in lowered or "remember" in lowered


def memory_supply(user_text: str) -> Supply:
    """Return a `Supply` (see `repair.py`) for the calls of memory tools.

    It fills missing required text fields with `user_text`, the user's last message.
    """
    said = " ".join(user_text.split())

    def supply(arguments: Mapping[str, Any], schema: Json) -> Mapping[str, Any]:
        if not said:
            return {}
        absent = [n for n in missing_required(arguments, schema) if _is_text(n, schema)]
        return {name: text for name in absent if (text := _derive(name, said))}

    return supply


def _is_text(name: str, schema: Json) -> bool:
    properties = schema.get("properties")
    declared = properties.get(name) if isinstance(properties, Mapping) else None
    kind = declared.get("type", "string") if isinstance(declared, Mapping) else "string"
    return kind == "string" or (isinstance(kind, list) and "string" in kind)


def _derive(name: str, said: str) -> str:
    if name in _TITLE:
        return said[:_TITLE_LENGTH]
    if name in _CONTENT:
        return f"{said}\nUse this when the same question comes up again."
    if name in _CONTEXT:
        return f"The user said: {said[:_TITLE_LENGTH]}"
    return ""
