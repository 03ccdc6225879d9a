"""Remedies of Chat Completions: what to change in a request after each refusal."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from byok.core.chat import Json
from byok.dialects.cache_points import CACHE_ROW
from byok.dialects.chat_changes import CHAT_ROWS
from byok.dialects.openai_chat.chunks import DETAILS, REASONING_FIELDS
from byok.dialects.remedies import (
    CHAT_REFUSED,
    Body,
    RefusedRequest,
    Remedy,
    RemedyMatch,
    RemedyRow,
    RemedyTable,
    drop_row,
    effort_row,
    lower_row,
    rename_row,
    switch_row,
    when,
)

# Changes to a chat/completions body: its reasoning, empty contents.


def without_reasoning(body: Json, _: Remedy) -> Body:
    """Remove the reasoning from the history, where it is in fields of its own."""
    names = (*REASONING_FIELDS, DETAILS)
    messages = [_without(m, names) for m in body.get("messages") or ()]
    return {**body, "messages": messages}


def with_blank_reasoning(body: Json, _: Remedy) -> Body:
    """Write a space for reasoning that is empty, or is missing beside calls."""
    messages = [_with_reasoning(m) for m in body.get("messages") or ()]
    return {**body, "messages": messages}


def _with_reasoning(message: Json) -> Body:
    names = [name for name in (*REASONING_FIELDS, DETAILS) if name in message]
    if not names and message.get("tool_calls"):
        return {**message, _USUAL: " "}
    return {**message, **{name: " " for name in names if message[name] == ""}}


def _without(item: Json, names: Sequence[str]) -> Body:
    return {key: value for key, value in item.items() if key not in names}


# Parameters that may be dropped without changing the meaning of a request.
_DROPPABLE = (
    "stream_options",
    "parallel_tool_calls",
    "tool_choice",
    "temperature",
    "top_p",
    "stop",
    "prompt_cache_retention",
    "prompt_cache_key",
    "tool_stream",
    "preserve_thinking",
)
_CAPS = {
    "max_completion_tokens": "max_tokens",
    "max_tokens": "max_completion_tokens",
}


# The settings for effort, in the forms of all vendors.
_EFFORTS = (
    "reasoning_effort",
    "reasoning.effort",
    "thinking_budget",
    "enable_thinking",
    "thinking",
    "chat_template_kwargs",
)
_USUAL = "reasoning_content"
# Kimi, DeepSeek and Xiaomi take empty reasoning for none.
_MISSING_REASONING = (
    r"(?:reasoning|thinking).*(?:passed back|missing|required)|missing.*reasoning"
)


def _find_reasoning(refused: RefusedRequest) -> RemedyMatch:
    """Recognise a refusal of reasoning in a message of the history."""
    text = refused.text.lower()
    named = any(name in text for name in (*REASONING_FIELDS, DETAILS))
    is_refused = any(words in text for words in _EXTRA_FIELD)
    return ("", "") if named and is_refused else None


# As DashScope, SiliconFlow, LM Studio and FastAPI's servers say it.
_NO_NULL = re.compile(
    r"\bcontent\b.*(?:required|null|none|<nil|be a (?:valid )?string)"
    r"|(?:required|null|none|<nil>)\b.*\bcontent|parameter is invalid. please check"
)
_NO_BLANK = re.compile(
    r"\bcontent\b.*(?:non-empty|(?:not|cannot) be (?:empty|blank)|is (?:empty|blank))"
    r"|empty.*\bcontent"
)


def _find_empty_content(refused: RefusedRequest) -> RemedyMatch:
    """Find out what an API takes beside tool calls instead of null, or of ""."""
    for pattern, refusing, empty in ((_NO_NULL, None, ""), (_NO_BLANK, "", None)):
        is_sent = any(
            m.get("tool_calls") and m.get("content", "") == refusing
            for m in refused.body.get("messages") or ()
        )
        if is_sent and pattern.search(refused.text.lower()):
            return ("null" if empty is None else "text", "")
    return None


def _write_empty_content(body: Json, remedy: Remedy) -> Body:
    """Write it where a message has tool calls but no words."""
    empty = None if remedy.what == "null" else ""
    messages = [
        {**m, "content": empty} if m.get("tool_calls") and not m.get("content") else m
        for m in body.get("messages") or ()
    ]
    return {**body, "messages": messages}


_EXTRA_FIELD = (
    *("extra", "unknown", "unrecognized", "unexpected", "additional propert"),
    *("not permitted", "not allowed", "unsupported", "not supported"),
)


# The first row that helps counts.
REMEDIES: RemedyTable = {
    "dialect": switch_row(CHAT_REFUSED),
    **CHAT_ROWS,
    # GPT-5.4 and later
    "no effort": RemedyRow(
        when("set reasoning_effort to '?none", lambda body: body.get("tools")),
        lambda body, _: {**body, "reasoning_effort": "none"},
        "This model calls tools in this API only without reasoning.",
    ),
    "reasoning": RemedyRow(_find_reasoning, without_reasoning),
    "blank reasoning": RemedyRow(when(_MISSING_REASONING), with_blank_reasoning),
    "empty content": RemedyRow(_find_empty_content, _write_empty_content),
    "cache": CACHE_ROW,
    "nearest effort": effort_row("reasoning_effort", "reasoning.effort"),
    "effort": replace(
        drop_row(_EFFORTS, with_extra=False),
        notice="This model refuses the setting for effort: {what} was not sent.",
    ),
    "lower cap": lower_row(_CAPS),
    "cap": rename_row(_CAPS, unless=_DROPPABLE),
    "parameter": drop_row((*_DROPPABLE, *_CAPS)),
}
