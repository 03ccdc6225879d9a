"""Earlier reasoning in a request: what goes back to the model, and in which form.

Reasoning goes back only to its origin, in the form in which it came (`reasoning.py`).
Which turns need theirs is a fact of the model. Where it is unknown, `reasoning_details`
go back, because routers want them for every model that has some, and reasoning that
came in a field goes back beside tool calls: models that think between calls forget why
they made them, and repeat them. Templates leave out what is of an earlier turn. byok
does not, because the prompt would no longer begin as the one before; an API that takes
no such field says so once (`remedies.py`).
"""

from typing import Any

from byok.chat import Json, Message, ThinkingPart
from byok.dialects.base import Target
from byok.dialects.model_facts import Replay
from byok.dialects.openai_chat.fields import DETAILS, REASONING_FIELDS
from byok.dialects.openai_chat.quirks import Quirks
from byok.dialects.openai_chat.reasoning import PARTS
from byok.dialects.openai_chat.reasoning_details import join_details
from byok.dialects.openai_chat.signatures import bypass_details
from byok.dialects.think_tags import tags_of
from byok.dialects.thought_signatures import wants_signatures

_EXTRA = "extra_content"


def replay_of(target: Target, quirks: Quirks) -> Replay | None:
    """Return which earlier reasoning goes back; None where nobody knows."""
    known = target.facts.replay
    return quirks.replay if known is None else known


def add_reasoning(
    sent: dict[str, Any], message: Message, target: Target, quirks: Quirks
) -> None:
    """Add the reasoning of an assistant message to what is sent of it.

    `sent` has `content`, and `tool_calls` where the message has calls.
    """
    replay, calls = replay_of(target, quirks), sent.get("tool_calls")
    if replay is Replay.NEVER:
        return
    wanted = replay is Replay.EVERY_TURN or bool(calls)
    blocks = [
        (part, part.provider_data.data_for(target.origin) if part.provider_data else {})
        for part in message.parts
        if isinstance(part, ThinkingPart)
    ]
    details = join_details(data.get("details") for _, data in blocks)
    if details and (wanted or replay is None):
        sent[DETAILS] = details
        wanted = wanted and replay is not None
    elif calls and quirks.details and wants_signatures(target.model):
        sent[DETAILS] = bypass_details(calls[0]["id"])
    if wanted:
        _add_text(sent, blocks, target, quirks, is_known=replay is not None)
    for _, data in blocks:
        if isinstance(data.get(_EXTRA), dict):
            sent[_EXTRA] = data[_EXTRA]


def _add_text(
    sent: dict[str, Any],
    blocks: list[tuple[ThinkingPart, Json]],
    target: Target,
    quirks: Quirks,
    *,
    is_known: bool,
) -> None:
    """Add reasoning as text: in a field, between tags, or as parts of the content.

    Between tags it is sent only if the model is known to want it.
    """
    empty = _choose(target.facts.empty_reasoning, quirks.empty_reasoning)
    plain = empty or quirks.replay is not None
    before, thoughts = "", list[str]()
    for part, data in blocks:
        name = data.get("field")
        if part.provider_data is None and plain and part.text:
            name = quirks.reasoning_field
        if name in REASONING_FIELDS:
            sent[name] = sent.get(name, "") + part.text
        elif is_known and (tags := tags_of(data)):
            before += f"{tags[0]}{part.text}{tags[1]}"
        elif data.get(PARTS) is True:
            thoughts.append(part.text)
    if before:
        sent["content"] = f"{before}{sent['content'] or ''}"
    if thoughts:
        sent["content"] = [*map(_thinking_part, thoughts), *_text(sent["content"])]
    if empty and not any(sent.get(name) for name in (*REASONING_FIELDS, DETAILS)):
        sent[quirks.reasoning_field] = ""


def _thinking_part(thought: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": thought}]}


def _text(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if content else []


def _choose(fact: bool | None, otherwise: bool) -> bool:
    return otherwise if fact is None else fact
