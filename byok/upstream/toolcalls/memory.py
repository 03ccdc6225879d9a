"""Fill missing text fields of memory tools with the user's own words.

The usual required fields of a memory tool (title, content, context) repeat what the
user just said, so they can be derived instead of failing the call. No other field is
ever filled in. A field counts as missing where it is absent, blank, or shorter than the
tool's schema allows: no client stores such a memory.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from byok.core.chat import Json, ToolDefinition
from byok.upstream.toolcalls.repair import Supply

_TITLE = frozenset({"title", "name", "summary"})
_CONTENT = frozenset({"memory", "content", "text"})
_CONTEXT = frozenset({"context", "scenario"})
_TITLE_LENGTH = 80
# A description of storing, so not "shows memory usage" or "searches memories".
_STORES = re.compile(
    r"\b(?:remembers?|memori[sz]es?)\b"
    r"|\b(?:saves?|stores?|adds?|creates?|records?|writes?|keeps?)\b[^.\n]{0,40}"
    r"\bmemor(?:y|ies)\b"
    r"|(?:保存|存储|添加|创建|写入|记录)[^。\n]{0,20}记忆|记住",
    re.IGNORECASE,
)
# By the script of the user's words: when to use the memory, and whose words these are.
_SENTENCES = (
    (
        re.compile(r"[\u3040-\u30ff]"),
        ("同じ質問がまた出たときに使う。", "ユーザーの発言："),
    ),
    (
        re.compile(r"[\uac00-\ud7af]"),
        ("같은 질문이 다시 나오면 사용한다.", "사용자의 말: "),
    ),
    (re.compile(r"[\u4e00-\u9fff]"), ("再次遇到同样的问题时使用。", "用户说：")),
)
_ENGLISH = "Use this when the same question comes up again.", "The user said: "
_SHARE = 0.2  # of the characters, from which on they are of a language


def is_memory_tool(name: str, description: str = "") -> bool:
    """Tell by its name or its description whether a tool stores memories."""
    lowered = name.lower()
    named = "memory" in lowered or "remember" in lowered
    return named or _STORES.search(description) is not None


def memory_tools(tools: Iterable[ToolDefinition]) -> frozenset[str]:
    """Return the names of the tools that store memories."""
    return frozenset(t.name for t in tools if is_memory_tool(t.name, t.description))


def memory_supply(user_text: str) -> Supply:
    """Return a `Supply` (see `repair.py`) for the calls of memory tools.

    It fills missing required text fields with `user_text`, the user's last message.
    """
    said = " ".join(user_text.split())

    def supply(arguments: Mapping[str, Any], schema: Json) -> Mapping[str, Any]:
        required = schema.get("required")
        names = required if said and isinstance(required, list) else []
        return {
            name: derived
            for name in names
            if isinstance(name, str)
            and (derived := _derive(name, said))
            and _lacks(name, arguments, schema)
        }

    return supply


def _lacks(name: str, arguments: Mapping[str, Any], schema: Json) -> bool:
    """Tell whether a field that may be text has none that a client would store."""
    properties = schema.get("properties")
    declared = properties.get(name) if isinstance(properties, Mapping) else None
    declared = declared if isinstance(declared, Mapping) else {}
    kind = declared.get("type", "string")
    kinds = kind if isinstance(kind, list) else [kind]
    if "string" not in kinds:
        return False
    value, least = arguments.get(name), declared.get("minLength")
    if not isinstance(value, str):
        return name not in arguments or (value is None and "null" not in kinds)
    return not value.strip() or (isinstance(least, int) and len(value) < least)


def _derive(name: str, said: str) -> str:
    written = (
        words
        for script, words in _SENTENCES
        if len(script.findall(said)) >= _SHARE * len(said)
    )
    use, intro = next(written, _ENGLISH)
    if name in _TITLE:
        return said[:_TITLE_LENGTH]
    if name in _CONTENT:
        return f"{said}\n{use}"
    if name in _CONTEXT:
        return f"{intro}{said[:_TITLE_LENGTH]}"
    return ""
