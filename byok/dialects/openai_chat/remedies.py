"""Remedies of Chat Completions: how to change a request after each refusal."""

import re
from collections.abc import Callable

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


# The parameters for effort, in the forms of all vendors.
_EFFORTS = (
    "reasoning_effort",
    "reasoning.effort",
    "thinking_budget",
    "enable_thinking",
    "thinking",
    "chat_template_kwargs",
)
_DEFAULT_FIELD = "reasoning_content"
_REASONING = (*REASONING_FIELDS, DETAILS)
# Kimi, DeepSeek and Xiaomi treat empty reasoning as missing.
_MISSING_REASONING = (
    r"(?:reasoning|thinking).*(?:passed back|missing|required)|missing.*reasoning"
)
# Refusals of null and of "" by DashScope, SiliconFlow, LM Studio, FastAPI's servers.
_NO_NULL = re.compile(
    r"\bcontent\b.*(?:required|null|none|<nil|be a (?:valid )?string)"
    r"|(?:required|null|none|<nil>)\b.*\bcontent|parameter is invalid. please check"
)
_NO_BLANK = re.compile(
    r"\bcontent\b.*(?:non-empty|(?:not|cannot) be (?:empty|blank)|is (?:empty|blank))"
    r"|empty.*\bcontent"
)
# Words of refusals of unknown fields.
_EXTRA_FIELD = (
    *("extra", "unknown", "unrecognized", "unexpected", "additional propert"),
    *("not permitted", "not allowed", "unsupported", "not supported"),
)


def _find_reasoning(refused: RefusedRequest) -> RemedyMatch:
    """Recognise a refusal of reasoning in a message of the history."""
    text = refused.text.lower()
    is_named = any(name in text for name in _REASONING)
    is_refused = any(words in text for words in _EXTRA_FIELD)
    return ("", "") if is_named and is_refused else None


def _find_empty_content(refused: RefusedRequest) -> RemedyMatch:
    """Find out whether an API requires "" or null as empty content of tool calls."""
    for pattern, refused_value, empty in ((_NO_NULL, None, ""), (_NO_BLANK, "", None)):
        is_sent = any(
            m.get("tool_calls") and m.get("content", "") == refused_value
            for m in refused.body.get("messages") or ()
        )
        if is_sent and pattern.search(refused.text.lower()):
            return ("null" if empty is None else "text", "")
    return None


def _change_messages(
    change: Callable[[Body, Remedy], Body],
) -> Callable[[Json, Remedy], Body]:
    """Return the `make` that changes each message of a body."""
    return lambda body, remedy: {
        **body,
        "messages": [change(m, remedy) for m in body.get("messages") or ()],
    }


def _write_empty_content(message: Body, remedy: Remedy) -> Body:
    """Write the accepted form into a message with tool calls but without text."""
    if message.get("content") or not message.get("tool_calls"):
        return message
    return {**message, "content": None if remedy.what == "null" else ""}


def _fill_reasoning(message: Body, _: Remedy) -> Body:
    """Write a space where reasoning is empty, or is missing beside calls."""
    names = [name for name in _REASONING if name in message]
    if not names and message.get("tool_calls"):
        return {**message, _DEFAULT_FIELD: " "}
    return {**message, **{name: " " for name in names if message[name] == ""}}


# The first row that helps counts.
REMEDIES: RemedyTable = {
    "dialect": switch_row(CHAT_REFUSED),
    **CHAT_ROWS,
    # GPT-5.4 and later
    "no effort": RemedyRow(
        when("set reasoning_effort to '?none", lambda r: r.body.get("tools")),
        lambda body, _: {**body, "reasoning_effort": "none"},
        "This model calls tools in this API only without reasoning.",
    ),
    "reasoning": RemedyRow(
        _find_reasoning,
        _change_messages(
            lambda m, _: {key: v for key, v in m.items() if key not in _REASONING}
        ),
    ),
    "blank reasoning": RemedyRow(
        when(_MISSING_REASONING), _change_messages(_fill_reasoning)
    ),
    "empty content": RemedyRow(
        _find_empty_content, _change_messages(_write_empty_content)
    ),
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
