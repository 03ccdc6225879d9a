"""Remedies of the Messages API: what to change in a request after each refusal."""

import re
from collections.abc import Callable
from typing import Any

from byok.core.chat import Json
from byok.core.errors import RefusalKind
from byok.dialects.anthropic.messages import cache_row
from byok.dialects.anthropic.request import (
    format_as_words,
    is_thought,
    without_thinking,
)
from byok.dialects.chat_changes import (
    CHAT_ROWS,
    digest_of_picture,
    write_picture_as_text,
)
from byok.dialects.remedies import (
    Body,
    RefusedRequest,
    Remedy,
    RemedyRow,
    RemedyTable,
    digest_of,
    drop_parameter,
    drop_row,
    has_parameter,
    lower_row,
    set_parameter,
)

# Thinking blocks that the Messages API refuses: they and all before them are left out.
#
# Signatures belong to a model, and with the newest models to the conversation before
# them (the API's guide, "Thinking"). Blocks after the refused one may still be valid,
# so they stay, and so does what the model thinks later.


_REFUSED = re.compile(r"signature|blocks? .*cannot be modified|block.?binding")
_PLACE = re.compile(r"messages\.(\d+)\.")


def refused_thinking_row() -> RemedyRow:
    """Return the row for signatures and blocks that are refused."""
    return RemedyRow(_find_thinking, _drop)


def _find_thinking(refused: RefusedRequest) -> tuple[str, str] | None:
    """Find the last block of the message that is named, or of all messages."""
    if not _REFUSED.search(refused.text.lower()):
        return None
    messages = list(refused.body.get("messages") or ())
    if place := _PLACE.search(refused.text):
        messages = messages[: int(place[1]) + 1]
    blocks = [block for m in messages for block in m["content"] if is_thought(block)]
    return ("", _digest(blocks[-1])) if blocks else None


def _drop(body: Json, remedy: Remedy) -> Body:
    messages: list[Any] = list(body.get("messages") or ())
    for place, message in enumerate(messages):
        digests = (_digest(b) for b in message["content"] if is_thought(b))
        if remedy.version in digests:
            kept = [*without_thinking(messages[: place + 1]), *messages[place + 1 :]]
            return {**body, "messages": kept}
    return dict(body)


def _digest(block: Json) -> str:
    mark = str(block.get("signature") or block.get("data"))
    return digest_of(mark.encode("utf-8", "replace"))


# Pictures that the Messages API refuses as too large: each becomes a sentence.


_PICTURE_PLACE = re.compile(
    r"messages\.(\d+)\.content\.(\d+)(?:\.tool_result\.content\.(\d+))?"
)
_TOO_LARGE = "[a picture stood here; it is too large for this model]"


def large_picture_row() -> RemedyRow:
    """Return the row that replaces the picture whose place a refusal names."""
    return RemedyRow(
        _find_picture,
        rewrite=lambda chat, r: write_picture_as_text(chat, r.version, _TOO_LARGE),
        notice="A picture is too large for this model: a sentence stands in its place.",
    )


def _find_picture(refused: RefusedRequest) -> tuple[str, str] | None:
    if refused.error.kind is not RefusalKind.TOO_LARGE:
        return None
    found = _PICTURE_PLACE.search(refused.text)
    block = _block_at(refused.body, found) if found else {}
    if block.get("type") != "image":
        return None
    return ("", digest_of_picture(str(block.get("source", {}).get("data", ""))))


def _block_at(body: Json, place: re.Match[str]) -> Json:
    """Return the block at a place such as `messages.0.content.1`, {} for no block."""
    node: Any = {"content": body.get("messages")}
    numbers = (int(n) for n in place.groups() if n is not None)
    for number in numbers:
        inner = node.get("content") if isinstance(node, dict) else None
        if not isinstance(inner, list) or number >= len(inner):
            return {}
        node = inner[number]
    return node if isinstance(node, dict) else {}


# Texts are in lower case. Of prompt + max_tokens > window
_TOO_MUCH = re.compile(r"(\d+) \+ \d+ > (\d+)")
_LEAST_ANSWER = 1024  # tokens; with less room the conversation must be cut
_UNSIGNED = re.compile(r"expected `?thinking|must start with a thinking")
_BUDGET = re.compile(r"thinking\.type\.enabled|budget_tokens|(?:use|only) .*adaptive")
_ADAPTIVE = re.compile(r"adaptive(?!\.)")
_ALWAYS = re.compile(
    r"thinking\.type\.disabled|between_tools|thinking.{0,60}disabl|disabl.{0,40}thinking"
)
_PREFILL = re.compile(r"prefill|must end with a user message")
_FORCED = re.compile(r"tool_choice|forc\w+ tool")
_FORMAT = re.compile(
    r"output_config(?:\.format|: )|output_?format|json_schema|structured output"
)
_CONTINUE = {"role": "user", "content": [{"type": "text", "text": "Continue."}]}
_OLD_BUDGET = 8192  # tokens, where the model does not think adaptively
_DROPPABLE = (
    "thinking.display",
    "output_config.effort",
    "thinking",
    "temperature",
    "top_p",
    "stop_sequences",
    "tool_choice.disable_parallel_tool_use",
    "tool_choice",
    "output_config",
)


def _when(
    pattern: re.Pattern[str], applies: Callable[[Json], bool]
) -> Callable[[RefusedRequest], tuple[str, str] | None]:
    """Return the search for refusals with a text, of bodies that can be changed."""

    def find(refused: RefusedRequest) -> tuple[str, str] | None:
        found = pattern.search(refused.text.lower()) and applies(refused.body)
        return ("", "") if found else None

    return find


def _thinking_type(body: Json) -> str:
    thinking = body.get("thinking")
    return str(thinking.get("type", "")) if isinstance(thinking, dict) else ""


def _as_adaptive(body: Json, _: Remedy) -> Body:
    if _thinking_type(body) != "enabled":
        return dict(body)
    return {**body, "thinking": {"type": "adaptive"}}


def _as_budget(body: Json, _: Remedy) -> Body:
    """Give a budget if there is room for one, else do not think."""
    if _thinking_type(body) != "adaptive":
        return dict(body)
    body = drop_parameter(drop_parameter(body, "thinking"), "output_config.effort")
    budget = min(_OLD_BUDGET, body.get("max_tokens", 0) // 2)
    if budget < _LEAST_ANSWER or _has_results_at_end(body):
        return body
    return {**body, "thinking": {"type": "enabled", "budget_tokens": budget}}


def _find_always(refused: RefusedRequest) -> tuple[str, str] | None:
    """Find what a model that cannot stop thinking takes instead: its least thinking."""
    text = refused.text.lower()
    if _thinking_type(refused.body) != "disabled" or not _ALWAYS.search(text):
        return None
    if "between_tools" in text:
        return ("between_tools", "")
    return ("effort" if "output_config.effort" in text else "", "")


def _think_least(body: Json, remedy: Remedy) -> Body:
    """Change only requests that were not to think: others keep their thinking."""
    if _thinking_type(body) != "disabled":
        return dict(body)
    if remedy.what == "between_tools":
        return {**body, "thinking": {"type": "between_tools"}}
    body = drop_parameter(body, "thinking")
    if remedy.what != "effort" or has_parameter(body, "output_config.effort"):
        return body
    return set_parameter(body, "output_config.effort", "low")


def _has_results_at_end(body: Json) -> bool:
    return any(b["type"] == "tool_result" for b in body["messages"][-1]["content"])


def _find_room(refused: RefusedRequest) -> tuple[str, str] | None:
    found = _TOO_MUCH.search(refused.text)
    if not found or not has_parameter(refused.body, "max_tokens"):
        return None
    room = int(found[2]) - int(found[1])
    return ("max_tokens", str(room)) if room >= _LEAST_ANSWER else None


def _make_room(body: Json, remedy: Remedy) -> Body:
    value, most = body.get("max_tokens"), int(remedy.version)
    is_above = type(value) is int and value > most
    return set_parameter(body, "max_tokens", most) if is_above else dict(body)


def _is_forced(body: Json) -> bool:
    choice = body.get("tool_choice")
    return isinstance(choice, dict) and choice.get("type") in ("any", "tool")


def _unforce(body: Json, _: Remedy) -> Body:
    if not _is_forced(body):
        return dict(body)
    kept = {k: v for k, v in body["tool_choice"].items() if k not in ("type", "name")}
    return {**body, "tool_choice": {"type": "auto", **kept}}


def _ends_with_assistant(body: Json) -> bool:
    messages = list(body.get("messages") or ())
    return bool(messages) and messages[-1]["role"] == "assistant"


def _end_with_user(body: Json, _: Remedy) -> Body:
    if not _ends_with_assistant(body):
        return dict(body)
    return {**body, "messages": [*body["messages"], _CONTINUE]}


def _has_both(body: Json) -> bool:
    return "temperature" in body and "top_p" in body


# The first row that helps counts. What a schema is refused for may have the name of a
# parameter, so tools come first.
REMEDIES: RemedyTable = {
    **CHAT_ROWS,
    "large picture": large_picture_row(),
    "signature": refused_thinking_row(),
    "no thinking": RemedyRow(
        _when(_UNSIGNED, lambda body: _thinking_type(body) == "enabled"),
        lambda body, _: drop_parameter(body, "thinking"),
    ),
    "adaptive": RemedyRow(
        _when(_BUDGET, lambda body: _thinking_type(body) == "enabled"), _as_adaptive
    ),
    "budget": RemedyRow(
        _when(_ADAPTIVE, lambda body: _thinking_type(body) == "adaptive"), _as_budget
    ),
    "always thinks": RemedyRow(_find_always, _think_least),
    "format": RemedyRow(
        _when(_FORMAT, lambda body: has_parameter(body, "output_config.format")),
        lambda body, _: format_as_words(dict(body)),
        "This model cannot be held to a JSON schema, so it was asked for it in words.",
        lambda chat: chat.is_first_turn,
    ),
    "forced": RemedyRow(
        _when(_FORCED, _is_forced),
        _unforce,
        "This model cannot be forced to call a tool, so it was free to answer.",
        lambda chat: chat.is_first_turn,
    ),
    "prefill": RemedyRow(_when(_PREFILL, _ends_with_assistant), _end_with_user),
    "room": RemedyRow(_find_room, _make_room),
    "lower": lower_row(("max_tokens", "thinking.budget_tokens")),
    "cache": cache_row(),
    "both": RemedyRow(
        _when(re.compile("top_p"), _has_both),
        lambda body, _: drop_parameter(body, "top_p"),
    ),
    "parameter": drop_row(_DROPPABLE),
}
