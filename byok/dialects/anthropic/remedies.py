"""Remedies of the Messages API: what to change in a request after each refusal."""

import re
from typing import Any

from byok.core.chat import Json
from byok.core.errors import RefusalKind
from byok.core.wire.json_fields import read_object, read_text
from byok.dialects.anthropic.request import UNSIGNED, is_thought, without_thinking
from byok.dialects.cache_points import CACHE_ROW
from byok.dialects.chat_changes import (
    CHAT_ROWS,
    digest_of_picture,
    write_picture_as_text,
)
from byok.dialects.remedies import (
    Body,
    RefusedRequest,
    Remedy,
    RemedyMatch,
    RemedyRow,
    RemedyTable,
    digest_of,
    drop_parameter,
    drop_row,
    effort_row,
    has_parameter,
    lower_named,
    lower_row,
    set_parameter,
    when,
)

# Thinking blocks that the Messages API refuses: they and all before them are left out.
#
# Signatures belong to a model, and with the newest models to the conversation before
# them (the API's guide, "Thinking"). Blocks after the refused one may still be valid,
# so they stay, and so does what the model thinks later.


_REFUSED = re.compile(r"signature|blocks? .*cannot be modified|block.?binding")
_PLACE = re.compile(r"messages\.(\d+)\.")


def _find_thinking(refused: RefusedRequest) -> RemedyMatch:
    """Find the last block of the message that is named, or of all messages."""
    if not _REFUSED.search(refused.text.lower()):
        return None
    messages = list(refused.body.get("messages") or ())
    if place := _PLACE.search(refused.text):
        messages = messages[: int(place[1]) + 1]
    blocks = [block for m in messages for block in m["content"] if is_thought(block)]
    return ("", _digest(blocks[-1])) if blocks else None


def _drop_thinking(body: Json, remedy: Remedy) -> Body:
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


def _find_picture(refused: RefusedRequest) -> RemedyMatch:
    if refused.error.kind is not RefusalKind.TOO_LARGE:
        return None
    found = _PICTURE_PLACE.search(refused.text)
    block = _block_at(refused.body, found) if found else {}
    if block.get("type") != "image":
        return None
    return ("", digest_of_picture(read_text(block.get("source"), "data")))


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
_UNSIGNED = r"expected `?thinking|must start with a thinking"
_BUDGET = r"thinking\.type\.enabled|budget_tokens|(?:use|only) .*adaptive"
_ADAPTIVE = r"adaptive(?!\.)"
_ALWAYS = re.compile(
    r"thinking\.type\.disabled|between_tools|thinking.{0,60}disabl|disabl.{0,40}thinking"
)
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


def _thinking_type(body: Json) -> str:
    return read_text(read_object(body, "thinking"), "type")


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
    if budget < _LEAST_ANSWER or _goes_on(body):
        return body
    return {**body, "thinking": {"type": "enabled", "budget_tokens": budget}}


def _find_always(refused: RefusedRequest) -> RemedyMatch:
    """Find what a model that cannot stop thinking takes instead: its least thinking."""
    text = refused.text.lower()
    if not _ALWAYS.search(text):
        return None
    if "between_tools" in text:
        return ("between_tools", "")
    return ("effort" if "output_config.effort" in text else "", "")


def _stop_thinking(body: Json, _: Remedy) -> Body:
    """Do not think in a conversation that has turns without their reasoning."""
    answers = [m["content"] for m in body["messages"] if m["role"] == "assistant"]
    if all(any(map(is_thought, content)) for content in answers):
        return dict(body)
    kept = without_thinking(body["messages"])
    return {**body, "messages": kept, "thinking": {"type": "disabled"}}


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


def _goes_on(body: Json) -> bool:
    """Tell whether the model goes on with a turn, which would begin with a thought."""
    last = body["messages"][-1]
    is_result = any(block["type"] == "tool_result" for block in last["content"])
    return is_result or last["role"] == "assistant"


def _find_room(refused: RefusedRequest) -> RemedyMatch:
    if not (found := _TOO_MUCH.search(refused.text)):
        return None
    room = int(found[2]) - int(found[1])
    return ("max_tokens", str(room)) if room >= _LEAST_ANSWER else None


# The first row that helps counts. What a schema is refused for may have the name of a
# parameter, so tools come first.
REMEDIES: RemedyTable = {
    **CHAT_ROWS,
    "large picture": RemedyRow(
        _find_picture,
        rewrite=lambda chat, r: write_picture_as_text(chat, r.version, _TOO_LARGE),
        notice="A picture is too large for this model: a sentence stands in its place.",
    ),
    "signature": RemedyRow(_find_thinking, _drop_thinking),
    "no thinking": RemedyRow(
        when(_UNSIGNED, lambda body: _thinking_type(body) == "enabled"),
        lambda body, _: drop_parameter(body, "thinking"),
    ),
    "no reasoning": RemedyRow(
        when(r"thinking\b.*must be passed back"), _stop_thinking, UNSIGNED
    ),
    "adaptive": RemedyRow(when(_BUDGET), _as_adaptive),
    "budget": RemedyRow(when(_ADAPTIVE), _as_budget),
    "always thinks": RemedyRow(_find_always, _think_least),
    "room": RemedyRow(_find_room, lower_named),
    "lower": lower_row(("max_tokens", "thinking.budget_tokens")),
    "cache": CACHE_ROW,
    "both": RemedyRow(
        when("top_p", lambda body: "temperature" in body),
        lambda body, _: drop_parameter(body, "top_p"),
    ),
    "effort": effort_row("output_config.effort"),
    "parameter": drop_row(_DROPPABLE),
}
