"""Messages of Chat Completions: roles, parts, calls, reasoning."""

from typing import Any

import pytest

from byok.core.chat import (
    ImagePart,
    Message,
    Origin,
    ProviderData,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from byok.core.errors import BadRequest
from byok.core.wire.encrypted_content import write_encrypted
from byok.protocols.v1.chat_completions import add_message
from byok.protocols.v1.turns import Turns

DATA = ProviderData(Origin("anthropic", "box", "m"), {"signature": "s"})
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
PNG = ImagePart("image/png", "AAAA")
HI = {"role": "user", "content": "Hi."}


def read(*messages: dict[str, Any]) -> tuple[Message, ...]:
    turns = Turns()
    for message in messages:
        add_message(turns, message)
    return turns.messages()


def test_messages_of_all_roles() -> None:
    function = {"name": "view", "arguments": '{"a":1}'}
    custom = {"name": "patch", "input": "***"}
    calls = [
        {"id": "1", "type": "function", "function": function},
        {"id": "2", "type": "custom", "custom": custom},
    ]
    shown = [{"type": "text", "text": "See"}, PICTURE]
    assert read(
        {"role": "developer", "content": "Be brief."},
        {"role": "system", "content": [{"type": "text", "text": "Be good."}]},
        {"role": "user", "content": shown},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "1", "content": shown},
        {"role": "tool", "tool_call_id": "2", "content": "done"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "refusal": "Never."},
    ) == (
        Message(Role.SYSTEM, (TextPart("Be brief.\n\nBe good."),)),
        Message(Role.USER, (TextPart("See"), PNG)),
        Message(
            Role.ASSISTANT,
            (
                ToolCall("1", "view", '{"a":1}'),
                ToolCall("2", "patch", '{"input":"***"}'),
            ),
        ),
        Message(
            Role.TOOL,
            (ToolResult("1", "view", "See\n[image 1 below]", images=(PNG,)),),
        ),
        Message(Role.TOOL, (ToolResult("2", "patch", "done"),)),
        Message(Role.ASSISTANT, (TextPart("No."),)),
        Message(Role.USER, (TextPart("Why?"),)),
        Message(Role.ASSISTANT, (TextPart("Never."),)),
    )


@pytest.mark.parametrize(
    ("fields", "thinking"),
    [
        ({}, []),
        ({"reasoning_content": "hm"}, [ThinkingPart("hm")]),
        ({"reasoning": "hm"}, [ThinkingPart("hm")]),
        (
            {
                "reasoning_content": "hm",
                "reasoning_details": [
                    {"text": "h", "data": write_encrypted(DATA)},
                    {"text": "m", "data": "of another server"},
                ],
            },
            [ThinkingPart("h", DATA), ThinkingPart("m")],
        ),
    ],
)
def test_messages_reasoning_comes_back(
    fields: dict[str, Any], thinking: list[ThinkingPart]
) -> None:
    (_, answer) = read(HI, {"role": "assistant", "content": "Hi.", **fields})
    assert answer.parts == (*thinking, TextPart("Hi."))


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"role": "king", "content": "x"}, "role must be"),
        ({"role": "user", "content": 1}, "content must be"),
        ({"role": "user", "content": [{"type": "input_audio"}]}, "input_audio"),
        ({"role": "assistant", "tool_calls": [{"id": ""}]}, "id of a tool call"),
    ],
)
def test_messages_that_cannot_be_read_are_refused(
    message: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadRequest, match=said):
        read(message)
