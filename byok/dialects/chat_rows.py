"""Remedies that rewrite the conversation: the same rows in the table of each dialect.

What a schema is refused for may have the name of a parameter, so these rows come before
those of parameters.
"""

import hashlib
from collections.abc import Mapping

from byok.chat import ChatRequest, ToolDefinition, ToolUse
from byok.dialects import chat_changes
from byok.dialects.model_facts import ModelFacts
from byok.dialects.parameter_rows import name_parameter
from byok.dialects.refused_tools import (
    find_description_limit,
    find_limit,
    find_tool,
)
from byok.dialects.remedies import RefusedRequest, Remedy, RemedyRow, RemedyTable
from byok.errors import RefusalKind
from byok.wire.json_body import write_json

_TOO_MANY = "most tools"
# Without these a model that seems to refuse all tools may take them.
_BESIDE_TOOLS = ("parallel_tool_calls", "tool_choice", "tool_stream")


def _find_most_tools(refused: RefusedRequest) -> tuple[str, str] | None:
    if refused.error.kind is not RefusalKind.TOO_MANY_TOOLS:
        return None
    most = find_limit(refused.text, len(_own_tools(refused)))
    return (str(most), "") if most else None


def _find_description_limit(refused: RefusedRequest) -> tuple[str, str] | None:
    longest = find_description_limit(refused.text)
    return (str(longest), "") if longest and _own_tools(refused) else None


def _find_tool(refused: RefusedRequest) -> tuple[str, str] | None:
    if refused.error.kind is not RefusalKind.BAD_SCHEMA:
        return None
    tool = find_tool(refused.text, _own_tools(refused))
    return (tool.name, _version_of(tool)) if tool else None


def _drop_tool(chat: ChatRequest, remedy: Remedy) -> ChatRequest:
    """Leave out one tool, unless its definition has changed."""
    return chat_changes.offer_tools(
        chat,
        [
            tool
            for tool in chat.tools
            if tool.name != remedy.what or _version_of(tool) != remedy.version
        ],
    )


def _find_no_tools(refused: RefusedRequest) -> tuple[str, str] | None:
    is_sent = refused.chat.tools and refused.body.get("tools")
    if not is_sent or refused.error.kind is not RefusalKind.NO_TOOLS:
        return None
    if name_parameter(refused, _BESIDE_TOOLS):
        return None
    return (refused.error.hint, "")


def _drop_tools(chat: ChatRequest, _: Remedy) -> ChatRequest:
    return chat_changes.write_calls_as_text(chat_changes.offer_tools(chat, ()))


def _find_bare_calls(refused: RefusedRequest) -> tuple[str, str] | None:
    kinds = (RefusalKind.NO_TOOLS, RefusalKind.NEEDS_TOOLS)
    is_bare = not refused.body.get("tools")
    return ("", "") if is_bare and refused.error.kind in kinds else None


def _write_bare_calls(chat: ChatRequest, _: Remedy) -> ChatRequest:
    """Write the calls of the past as text where the model may not call any tool."""
    if chat.tools and chat.tool_choice.use is not ToolUse.NONE:
        return chat
    return chat_changes.write_calls_as_text(chat)


def _find_pictures(refused: RefusedRequest) -> tuple[str, str] | None:
    return ("", "") if refused.error.kind is RefusalKind.NO_IMAGES else None


def _is_first_turn(chat: ChatRequest) -> bool:
    return chat.is_first_turn


CHAT_ROWS: RemedyTable = {
    _TOO_MANY: RemedyRow(
        _find_most_tools,
        rewrite=lambda chat, r: chat_changes.keep_most_tools(chat, int(r.what)),
        notice="This model takes {what} tools at most, so the last ones were left out. "
        "Switch off MCP servers that you do not need.",
        matters=_is_first_turn,
        teaches=lambda remedy: ModelFacts("", most_tools=int(remedy.what)),
    ),
    "descriptions": RemedyRow(
        _find_description_limit,
        rewrite=lambda chat, r: chat_changes.shorten_descriptions(chat, int(r.what)),
    ),
    "tool": RemedyRow(
        _find_tool,
        rewrite=_drop_tool,
        notice="Tools whose parameters this model refuses were left out: {what}.",
        matters=_is_first_turn,
    ),
    "no tools": RemedyRow(
        _find_no_tools,
        rewrite=_drop_tools,
        notice="This model was asked without tools, because it refuses them. {what}",
        matters=_is_first_turn,
        is_for_agents=True,
        teaches=lambda _: ModelFacts("", tools=False),
    ),
    "calls": RemedyRow(_find_bare_calls, rewrite=_write_bare_calls),
    "pictures": RemedyRow(
        _find_pictures,
        rewrite=lambda chat, _: chat_changes.write_pictures_as_text(chat),
        notice="This model does not support images: a placeholder replaces them.",
        matters=chat_changes.shows_picture,
        teaches=lambda _: ModelFacts("", images=False),
    ),
}


def presumed_remedies(facts: ModelFacts, most_tools: int = 0) -> tuple[Remedy, ...]:
    """Return the remedies that a model is known to need before any refusal.

    `most_tools` is how many tools its vendor takes, if its facts do not say that; 0 is
    any number.
    """
    most = facts.most_tools or most_tools
    few_tools = (Remedy(_TOO_MANY, str(most)),) if most else ()
    no_tools = (Remedy("no tools"),) if facts.tools is False else ()
    no_pictures = (Remedy("pictures"),) if facts.images is False else ()
    return (*few_tools, *no_tools, *no_pictures)


def _own_tools(refused: RefusedRequest) -> Mapping[str, ToolDefinition]:
    """Return the conversation's tools in their order, by the names that were sent.

    There are none if they were not sent, and where the user has added tools to the
    body: a refusal may be about those.
    """
    if "tools" in refused.extra or not refused.body.get("tools"):
        return {}
    sent = {name: alias for alias, name in refused.tool_names.items()}
    return {sent.get(tool.name, tool.name): tool for tool in refused.chat.tools}


def _version_of(tool: ToolDefinition) -> str:
    """Return a digest of a tool's definition."""
    raw = write_json([tool.name, tool.description, tool.parameters])
    return hashlib.blake2b(raw, digest_size=8).hexdigest()
