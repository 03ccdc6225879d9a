"""Remedies of the Messages API: how to change a request after each refusal."""

import re
from typing import Any

from byok.core.chat import Json
from byok.core.errors import RefusalKind
from byok.core.wire.json_fields import read_object, read_text
from byok.dialects.anthropic.request import UNSIGNED, is_thought, without_thinking
from byok.dialects.cache_points import CACHE_ROW
from byok.dialects.chat_changes import CHAT_ROWS, digest_of_picture, write_pictures_as
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

_REFUSED_THINKING = re.compile(r"signature|blocks? .*cannot be modified|block.?binding")
_MESSAGE_PATH = re.compile(r"messages\.(\d+)\.")
_PICTURE_PATH = re.compile(
    r"messages\.(\d+)\.content\.(\d+)(?:\.tool_result\.content\.(\d+))?"
)
_TOO_LARGE = "[a picture stood here; it is too large for this model]"
_OVERFLOW = re.compile(r"(\d+) \+ \d+ > (\d+)")  # prompt + max_tokens > window
_MIN_ANSWER = 1024  # tokens; for less, the conversation must be cut instead
# Patterns of refusals about thinking, for text in lower case.
_UNSIGNED = r"expected `?thinking|must start with a thinking"
_BUDGET = r"thinking\.type\.enabled|budget_tokens|(?:use|only) .*adaptive"
_ADAPTIVE = r"adaptive(?!\.)"
_ALWAYS_THINKS = re.compile(
    r"thinking\.type\.disabled|between_tools|thinking.{0,60}disabl|disabl.{0,40}thinking"
)
_BUDGET_TOKENS = 8192  # for a model that cannot think adaptively
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


def _find_thinking(refused: RefusedRequest) -> RemedyMatch:
    """Find the last thinking block of the named message, or of all messages.

    Signatures belong to a model, and with the newest models to the conversation before
    them (the API's guide, "Thinking"). So the remedy drops this block and all before
    it; later blocks, and those still to come, may be valid.
    """
    if not _REFUSED_THINKING.search(refused.text.lower()):
        return None
    messages = list(refused.body.get("messages") or ())
    if path := _MESSAGE_PATH.search(refused.text):
        messages = messages[: int(path[1]) + 1]
    blocks = [block for m in messages for block in m["content"] if is_thought(block)]
    return ("", _digest(blocks[-1])) if blocks else None


def _drop_thinking(body: Json, remedy: Remedy) -> Body:
    messages: list[Any] = list(body.get("messages") or ())
    for number, message in enumerate(messages, 1):
        digests = (_digest(b) for b in message["content"] if is_thought(b))
        if remedy.version in digests:
            bare = without_thinking(messages[:number])
            return {**body, "messages": [*bare, *messages[number:]]}
    return dict(body)


def _digest(block: Json) -> str:
    signature = str(block.get("signature") or block.get("data"))
    return digest_of(signature.encode("utf-8", "replace"))


def _find_picture(refused: RefusedRequest) -> RemedyMatch:
    if refused.error.kind is not RefusalKind.TOO_LARGE:
        return None
    path = _PICTURE_PATH.search(refused.text)
    block = _block_at(refused.body, path) if path else {}
    if block.get("type") != "image":
        return None
    return ("", digest_of_picture(read_text(block.get("source"), "data")))


def _block_at(body: Json, path: re.Match[str]) -> Json:
    """Return the block at a path such as `messages.0.content.1`, or {}."""
    node: Any = {"content": body.get("messages")}
    indices = (int(n) for n in path.groups() if n is not None)
    for index in indices:
        inner = node.get("content") if isinstance(node, dict) else None
        if not isinstance(inner, list) or index >= len(inner):
            return {}
        node = inner[index]
    return node if isinstance(node, dict) else {}


def _thinking_type(body: Json) -> str:
    return read_text(read_object(body, "thinking"), "type")


def _think_with_budget(body: Json, _: Remedy) -> Body:
    """Set a budget if `max_tokens` leaves space for one, else do not think."""
    if _thinking_type(body) != "adaptive":
        return dict(body)
    body = drop_parameter(drop_parameter(body, "thinking"), "output_config.effort")
    budget = min(_BUDGET_TOKENS, body.get("max_tokens", 0) // 2)
    last = body["messages"][-1]
    # A turn that the model continues had to begin with a thought.
    is_open = last["role"] == "assistant" or any(
        block["type"] == "tool_result" for block in last["content"]
    )
    if budget < _MIN_ANSWER or is_open:
        return body
    return {**body, "thinking": {"type": "enabled", "budget_tokens": budget}}


def _find_least_thinking(refused: RefusedRequest) -> RemedyMatch:
    """Find the setting for the least thinking of a model that always thinks."""
    text = refused.text.lower()
    if not _ALWAYS_THINKS.search(text):
        return None
    if "between_tools" in text:
        return ("between_tools", "")
    return ("effort" if "output_config.effort" in text else "", "")


def _stop_thinking(body: Json, _: Remedy) -> Body:
    """Disable thinking if an earlier turn of the model has lost its reasoning."""
    answers = [m["content"] for m in body["messages"] if m["role"] == "assistant"]
    if all(any(map(is_thought, content)) for content in answers):
        return dict(body)
    messages = without_thinking(body["messages"])
    return {**body, "messages": messages, "thinking": {"type": "disabled"}}


def _think_least(body: Json, remedy: Remedy) -> Body:
    """Replace disabled thinking by the least possible; other requests stay."""
    if _thinking_type(body) != "disabled":
        return dict(body)
    if remedy.what == "between_tools":
        return {**body, "thinking": {"type": "between_tools"}}
    body = drop_parameter(body, "thinking")
    if remedy.what != "effort" or has_parameter(body, "output_config.effort"):
        return body
    return set_parameter(body, "output_config.effort", "low")


def _find_space(refused: RefusedRequest) -> RemedyMatch:
    if not (counts := _OVERFLOW.search(refused.text)):
        return None
    space = int(counts[2]) - int(counts[1])
    return ("max_tokens", str(space)) if space >= _MIN_ANSWER else None


# The first row that helps counts. A refused part of a schema may have the name of a
# parameter, so rows about tools come first.
REMEDIES: RemedyTable = {
    **CHAT_ROWS,
    "large picture": RemedyRow(
        _find_picture,
        rewrite=lambda chat, r: write_pictures_as(
            chat,
            lambda image: (
                _TOO_LARGE if digest_of_picture(image.data) == r.version else ""
            ),
        ),
        notice="A picture is too large for this model: a sentence stands in its place.",
    ),
    "signature": RemedyRow(_find_thinking, _drop_thinking),
    "no thinking": RemedyRow(
        when(_UNSIGNED, lambda r: _thinking_type(r.body) == "enabled"),
        lambda body, _: drop_parameter(body, "thinking"),
    ),
    "no reasoning": RemedyRow(
        when(r"thinking\b.*must be passed back"), _stop_thinking, UNSIGNED
    ),
    "adaptive": RemedyRow(
        when(_BUDGET),
        lambda body, _: (
            {**body, "thinking": {"type": "adaptive"}}
            if _thinking_type(body) == "enabled"
            else dict(body)
        ),
    ),
    "budget": RemedyRow(when(_ADAPTIVE), _think_with_budget),
    "always thinks": RemedyRow(_find_least_thinking, _think_least),
    "room": RemedyRow(_find_space, lower_named),
    "lower": lower_row(("max_tokens", "thinking.budget_tokens")),
    "cache": CACHE_ROW,
    "both": RemedyRow(
        when("top_p", lambda r: "temperature" in r.body),
        lambda body, _: drop_parameter(body, "top_p"),
    ),
    "effort": effort_row("output_config.effort"),
    "parameter": drop_row(_DROPPABLE),
}
