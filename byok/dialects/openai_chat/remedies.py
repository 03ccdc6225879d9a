"""Remedies of Chat Completions: what to change in a request after each refusal."""

from byok.chat import Json
from byok.dialects.openai_chat import changes
from byok.dialects.openai_chat.quirks import Quirks
from byok.dialects.parameter_rows import drop_row, name_parameter, rename_row
from byok.dialects.refused_tools import (
    OfferedTool,
    find_description_limit,
    find_limit,
    find_tool,
    version_of,
)
from byok.dialects.remedies import (
    Body,
    RefusedRequest,
    Remedy,
    RemedyRow,
    RemedyTable,
    switch_row,
)
from byok.errors import RefusalKind

# Parameters that may be dropped without changing the meaning of a request.
_DROPPABLE = (
    "stream_options",
    "parallel_tool_calls",
    "tool_choice",
    "temperature",
    "top_p",
)
_ABOUT_TOOLS = ("parallel_tool_calls", "tool_choice")
_CAPS = {
    "max_completion_tokens": "max_tokens",
    "max_tokens": "max_completion_tokens",
}
# In refusals of models that OpenAI, Azure and Copilot serve by another API only.
_OTHER_APIS = {
    "v1/responses": "openai_responses",
    "responses api": "openai_responses",
    "responses endpoint": "openai_responses",
    "v1/messages": "anthropic",
}


def _tool_list(refused: RefusedRequest) -> list[OfferedTool]:
    """Return the functions offered; tools that the user added may be others."""
    if "tools" in refused.extra:
        return []
    return [
        OfferedTool(tool["name"], tool["parameters"], version_of(tool))
        for tool in changes.tools_of(refused.body)
    ]


def _begins(body: Json) -> bool:
    """Tell whether this is the first turn of a conversation."""
    return all(message["role"] != "assistant" for message in body["messages"])


def _shows(body: Json) -> bool:
    """Tell whether the newest turn contains a picture."""
    for message in reversed(body["messages"]):
        if message["role"] == "assistant":
            break
        if changes.has_picture(message):
            return True
    return False


def _too_many_tools(refused: RefusedRequest) -> tuple[str, str] | None:
    if refused.error.kind is not RefusalKind.TOO_MANY_TOOLS:
        return None
    most = find_limit(refused.text, len(_tool_list(refused)))
    return (str(most), "") if most else None


def _long_description(refused: RefusedRequest) -> tuple[str, str] | None:
    longest = find_description_limit(refused.text)
    return (str(longest), "") if longest and _tool_list(refused) else None


def _bad_tool(refused: RefusedRequest) -> tuple[str, str] | None:
    if refused.error.kind is not RefusalKind.BAD_SCHEMA:
        return None
    found = find_tool(refused.text, _tool_list(refused))
    return (found.name, found.version) if found else None


def _tools_at_all(refused: RefusedRequest) -> tuple[str, str] | None:
    named = name_parameter(refused, (*_DROPPABLE, *_CAPS, *refused.extra))
    if named in _ABOUT_TOOLS:  # without that one it may take tools
        return None
    wanted = refused.error.kind is RefusalKind.NO_TOOLS and refused.body.get("tools")
    return (refused.error.hint, "") if wanted else None


def _old_calls(refused: RefusedRequest) -> tuple[str, str] | None:
    kinds = (RefusalKind.NO_TOOLS, RefusalKind.NEEDS_TOOLS)
    bare = not refused.body.get("tools") and changes.has_calls(refused.body)
    return ("", "") if bare and refused.error.kind in kinds else None


def _pictures(refused: RefusedRequest) -> tuple[str, str] | None:
    shown = any(map(changes.has_picture, refused.body.get("messages") or ()))
    wanted = shown and refused.error.kind is RefusalKind.NO_IMAGES
    return ("", "") if wanted else None


def _old_calls_as_text(body: Json) -> Body:
    return dict(body) if body.get("tools") else changes.calls_as_text(body)


# The first row that helps counts. What a schema is refused for may have the name of a
# parameter, so tools come first.
REMEDIES: RemedyTable = {
    "dialect": switch_row(_OTHER_APIS),
    "most tools": RemedyRow(
        _too_many_tools,
        lambda body, remedy: changes.fewer_tools(body, int(remedy.what)),
        "This model takes {what} tools at most, so the last ones were left out. Switch "
        "off MCP servers that you do not need.",
        _begins,
    ),
    "descriptions": RemedyRow(
        _long_description,
        lambda body, remedy: changes.short_descriptions(body, int(remedy.what)),
    ),
    "tool": RemedyRow(
        _bad_tool,
        lambda body, remedy: changes.without_tool(body, remedy.what, remedy.version),
        "Tools whose parameters this model refuses were left out: {what}.",
        _begins,
    ),
    "no tools": RemedyRow(
        _tools_at_all,
        lambda body, _: changes.without_tools(body),
        "This model was asked without tools, because it refuses them. {what}",
        _begins,
        is_for_agents=True,
    ),
    "calls": RemedyRow(_old_calls, lambda body, _: _old_calls_as_text(body)),
    "pictures": RemedyRow(
        _pictures,
        lambda body, _: changes.pictures_as_text(body),
        "This model sees no pictures: a sentence stands where they were.",
        _shows,
    ),
    "cap": rename_row(_CAPS, unless=_DROPPABLE),
    "parameter": drop_row((*_DROPPABLE, *_CAPS)),
}


def presumed_remedies(quirks: Quirks) -> tuple[Remedy, ...]:
    """Return the remedies that a vendor is known to need."""
    return (Remedy("most tools", str(quirks.most_tools)),) if quirks.most_tools else ()
