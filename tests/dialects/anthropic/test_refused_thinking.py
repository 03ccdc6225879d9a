"""Thinking blocks that are refused, and those that stay."""

import pytest

from byok.core.chat import ToolCall
from byok.dialects.anthropic.remedies import REMEDIES
from byok.dialects.error_bodies import refusal_of
from byok.dialects.remedies import RefusedRequest, Remedy, change_body, find_remedy
from tests.fakes.messages_api import (
    CALL,
    REDACTED,
    THOUGHT,
    assistant,
    encode,
    result,
    thought,
    user,
)

NEXT = ToolCall("toolu_2", "view", "{}")
LATER = {**THOUGHT, "signature": "bGF0ZXI="}
TALK = (
    user("?"),
    assistant(thought(REDACTED), thought(), CALL),
    result(),
    assistant(thought(LATER), NEXT),
    result(NEXT),
)


def find(message: str) -> Remedy | None:
    error = refusal_of({"error": {"message": message}}, 400)
    return find_remedy(REMEDIES, RefusedRequest(encode(*TALK).body, error))


def kinds(remedy: Remedy) -> list[str]:
    body, notices = change_body(REMEDIES, encode(*TALK).body, [remedy], new=[remedy])
    assert notices == ()
    return [b["type"] for m in body["messages"] for b in m["content"]][1:]


@pytest.mark.parametrize(
    "text",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.1.content.1: `thinking` or `redacted_thinking` blocks in the latest "
        "assistant message cannot be modified.",
    ],
)
def test_the_message_that_is_named_loses_its_thinking(text: str) -> None:
    remedy = find(text)
    assert remedy
    left = ["tool_use", "tool_result", "thinking", "tool_use", "tool_result"]
    assert kinds(remedy) == left


@pytest.mark.parametrize("place", ["", "messages.3.content.0: "])
def test_all_thinking_up_to_the_last_refused_block_goes(place: str) -> None:
    remedy = find(f"{place}Invalid `signature` in `thinking` block")
    assert remedy
    assert kinds(remedy) == ["tool_use", "tool_result"] * 2


def test_other_conversations_keep_their_thinking() -> None:
    body = encode(user("?"), assistant(thought(), CALL), result()).body
    other = Remedy("signature", "", "of another block")
    assert change_body(REMEDIES, body, [other])[0] == body
