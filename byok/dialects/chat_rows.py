"""Remedies that rewrite the conversation: the same rows in the table of each dialect.

What a schema is refused for may have the name of a parameter, so these rows come before
those of parameters. They are also made in this order: a model that takes no roles but
two and no system message gets records of its calls before the roles are put in order,
and the system message goes into the question last.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from byok.chat import (
    ChatRequest,
    TextPart,
    ThinkingPart,
    ToolDefinition,
    ToolUse,
)
from byok.dialects import chat_changes
from byok.dialects.model_facts import ModelFacts
from byok.dialects.parameter_rows import name_parameter
from byok.dialects.refused_tools import (
    find_description_limit,
    find_limit,
    find_tool,
)
from byok.dialects.remedies import RefusedRequest, Remedy, RemedyRow, RemedyTable
from byok.dialects.safe_names import IdRule, NameRule
from byok.errors import RefusalKind
from byok.wire.json_body import write_json

Found: TypeAlias = tuple[str, str] | None

_TOO_MANY = "most tools"
# What chat templates of models raise, which llama.cpp, vLLM, LM Studio, TGI and Ollama
# pass on in words of their own, and what Mistral's tokenizer and other vendors say.
_NO_SYSTEM = (
    r"system role (?:is )?not supported|does ?n[o']t support (?:the )?'?system"
    r"|(?:system|developer) (?:role|messages?|instructions?) (?:is|are) not"
    r" (?:supported|enabled)"
)
_ONE_CALL = (
    r"only supports? single tool.calls?|(?:parallel|multiple) tool calls (?:is|are) not"
)
_ROLES = (
    r"roles? must alternate|must alternate between|unexpected (?:message )?role"
    r"|system message must be (?:at the beginning|first)|expected last role"
    r"|only user and assistant roles|no user query found"
)
# Anthropic, OpenAI, Cohere, Amazon's Converse and others.
_TOOL_NAME = re.compile(
    r"(?:(?:tools?|functions?|custom|toolspec)(?:\W\d+)?\W{1,3}name"
    r"|name of (?:an? |the )?(?:tool|function))s?\b.*"
    r"(?:pattern|must match|only contain|regular expression|too long|characters)"
)
_SIGNS = re.compile(r"[\[(]([A-Za-z0-9_.:/\\-]{3,40})[\])]")
_LONGEST_NAME = re.compile(r"\{\d,(\d{1,3})\}|(?:length|at most|longer than) (\d{1,3})")
_NAME_LENGTH, _SHORTEST = 64, 16
_NINE = re.compile(r"(?:alphanumeric|a-z, 0-9).*length (?:of )?9\b")
_ID = r"(?:tool_call_?id|tool_use_id|call_id|\btool_calls?\W+\d+\W+id)\b"
_LONGEST_ID = re.compile(_ID + r".*maximum length (\d{1,3})\b")
_PLAIN_ID = re.compile(_ID + r".*match pattern")
# Without these a model that seems to refuse all tools may take them.
_BESIDE_TOOLS = ("parallel_tool_calls", "tool_choice", "tool_stream")


def _find_most_tools(refused: RefusedRequest) -> Found:
    if refused.error.kind is not RefusalKind.TOO_MANY_TOOLS:
        return None
    most = find_limit(refused.text, len(_own_tools(refused)))
    return (str(most), "") if most else None


def _find_description_limit(refused: RefusedRequest) -> Found:
    longest = find_description_limit(refused.text)
    return (str(longest), "") if longest and _own_tools(refused) else None


def _find_tool(refused: RefusedRequest) -> Found:
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


def _find_no_tools(refused: RefusedRequest) -> Found:
    is_sent = refused.chat.tools and refused.body.get("tools")
    if not is_sent or refused.error.kind is not RefusalKind.NO_TOOLS:
        return None
    if name_parameter(refused, _BESIDE_TOOLS):
        return None
    return (refused.error.hint, "")


def _drop_tools(chat: ChatRequest, _: Remedy) -> ChatRequest:
    return chat_changes.write_calls_as_text(chat_changes.offer_tools(chat, ()))


def _find_bare_calls(refused: RefusedRequest) -> Found:
    kinds = (RefusalKind.NO_TOOLS, RefusalKind.NEEDS_TOOLS)
    is_bare = not refused.body.get("tools")
    return ("", "") if is_bare and refused.error.kind in kinds else None


def _write_bare_calls(chat: ChatRequest, _: Remedy) -> ChatRequest:
    """Write the calls of the past as text where the model may not call any tool."""
    if chat.tools and chat.tool_choice.use is not ToolUse.NONE:
        return chat
    return chat_changes.write_calls_as_text(chat)


def _find_pictures(refused: RefusedRequest) -> Found:
    return ("", "") if refused.error.kind is RefusalKind.NO_IMAGES else None


def _when(pattern: str) -> Callable[[RefusedRequest], Found]:
    """Return the search for refusals whose text, in lower case, has a pattern."""
    compiled = re.compile(pattern)

    def find(refused: RefusedRequest) -> Found:
        return ("", "") if compiled.search(refused.text.lower()) else None

    return find


def _find_records(refused: RefusedRequest) -> Found:
    """Find out whether no message at all may be a call or a result.

    That is so where the roles alternate as far as they can, and are refused all the
    same, as by templates of models that were not trained to call tools.
    """
    is_in_order = chat_changes.alternate_roles(refused.chat) == refused.chat
    return _when(_ROLES)(refused) if is_in_order else None


def _find_ids(refused: RefusedRequest) -> Found:
    """Find out which ids of calls are accepted: how long, and whether of any signs."""
    text = refused.text.lower()
    if _NINE.search(text):
        return ("9", "exact")
    if found := _LONGEST_ID.search(text):
        return (found[1], "plain")
    return ("64", "plain") if _PLAIN_ID.search(text) else None


def _spell_ids(chat: ChatRequest, remedy: Remedy) -> ChatRequest:
    is_exact = remedy.version == "exact"
    rule = IdRule(int(remedy.what), is_exact=is_exact, is_plain=not is_exact)
    return chat_changes.spell_call_ids(chat, rule)


def _find_names(refused: RefusedRequest) -> Found:
    """Find out which signs and how many of them an API takes in the name of a tool.

    Of the pattern that a refusal quotes, the signs beside letters and digits count.
    """
    if not _TOOL_NAME.search(refused.text.lower()):
        return None
    quoted = _SIGNS.findall(refused.text)
    signs = re.sub(r"\w-\w", "", " ".join(quoted)) if quoted else "_"
    sign = next((sign for sign in "_-" if sign in signs), "")
    longest = _LONGEST_NAME.search(refused.text.lower())
    most = int(next(filter(None, longest.groups()))) if longest else _NAME_LENGTH
    return (sign, str(min(max(most, _SHORTEST), _NAME_LENGTH)))


def _rename(chat: ChatRequest, remedy: Remedy) -> ChatRequest:
    rule = NameRule(int(remedy.version), remedy.what)
    return chat_changes.rename_tools(chat, rule)


def _is_first_turn(chat: ChatRequest) -> bool:
    return chat.is_first_turn


NAMES = "names"
CHAT_ROWS: RemedyTable = {
    NAMES: RemedyRow(_find_names, rewrite=_rename),
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
    _TOO_MANY: RemedyRow(
        _find_most_tools,
        rewrite=lambda chat, r: chat_changes.keep_most_tools(chat, int(r.what)),
        notice="This model takes {what} tools at most, so the last ones were left out. "
        "Switch off MCP servers that you do not need.",
        matters=_is_first_turn,
        teaches=lambda remedy: ModelFacts("", most_tools=int(remedy.what)),
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
    "records": RemedyRow(
        _find_records, rewrite=lambda chat, _: chat_changes.write_calls_as_text(chat)
    ),
    "roles": RemedyRow(
        _when(_ROLES), rewrite=lambda chat, _: chat_changes.alternate_roles(chat)
    ),
    "one call": RemedyRow(
        _when(_ONE_CALL),
        rewrite=lambda chat, _: chat_changes.split_parallel_calls(chat),
    ),
    "ids": RemedyRow(_find_ids, rewrite=_spell_ids),
    "reasoning beside text": RemedyRow(
        _when("cannot pass both content and thinking"),
        rewrite=lambda chat, _: chat_changes.drop_beside_calls(chat, ThinkingPart),
    ),
    "text beside calls": RemedyRow(
        _when("content or tool_calls, but not both"),
        rewrite=lambda chat, _: chat_changes.drop_beside_calls(chat, TextPart),
    ),
    "system": RemedyRow(
        _when(_NO_SYSTEM),
        rewrite=lambda chat, _: chat_changes.put_system_into_question(chat),
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
