"""Items of Responses: messages, calls, results, reasoning."""

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
from byok.protocols.v1.responses import add_items
from byok.protocols.v1.turns import Turns

DATA = ProviderData(Origin("openai_responses", "box", "m"), {"id": "rs_1"})
PNG = ImagePart("image/png", "AAAA")
PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}


def read(given: Any) -> tuple[tuple[Message, ...], list[str]]:
    turns = Turns()
    left_out = add_items(turns, given)
    return turns.messages(), left_out


def said(kind: str, text: str) -> list[dict[str, str]]:
    return [{"type": kind, "text": text}]


def test_items_may_be_one_text() -> None:
    assert read("Hi.") == ((Message(Role.USER, (TextPart("Hi."),)),), [])


def test_items_of_a_turn_are_one_message() -> None:
    reasoning = {
        "type": "reasoning",
        "summary": said("summary_text", "hm"),
        "content": None,
        "encrypted_content": write_encrypted(DATA),
    }
    view = {"type": "function_call", "call_id": "1", "name": "view"}
    patch = {"type": "custom_tool_call", "call_id": "2", "name": "patch"}
    messages, left_out = read(
        [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [*said("input_text", "See"), PICTURE]},
            reasoning,
            {
                "type": "message",
                "role": "assistant",
                "content": said("output_text", "Ok."),
            },
            {**view, "arguments": '{"a":1}'},
            {**patch, "input": "***"},
            {"type": "local_shell_call", "id": "3", "action": {"command": ["ls"]}},
            {"type": "function_call_output", "call_id": "1", "output": "one"},
            {
                "type": "custom_tool_call_output",
                "call_id": "2",
                "output": [*said("input_text", "two"), PICTURE],
            },
            {"type": "local_shell_call_output", "id": "3", "output": "three"},
            {"type": "web_search_call", "id": "ws_1"},
            {**view, "call_id": "4"},
            {"type": "message", "role": "assistant", "content": [
                {"type": "refusal", "refusal": "No."},
            ]},
        ]
    )  # fmt: skip
    assert left_out == ["the item 'web_search_call'"]
    calls = (
        ToolCall("1", "view", '{"a":1}'),
        ToolCall("2", "patch", '{"input":"***"}'),
        ToolCall("3", "local_shell", '{"command":["ls"]}'),
    )
    assert messages[:3] == (
        Message(Role.SYSTEM, (TextPart("Be brief."),)),
        Message(Role.USER, (TextPart("See"), PNG)),
        Message(Role.ASSISTANT, (ThinkingPart("hm", DATA), TextPart("Ok."), *calls)),
    )
    results = [m.parts[0] for m in messages if m.role is Role.TOOL]
    assert results[:3] == [
        ToolResult("1", "view", "one"),
        ToolResult("2", "patch", "two\n[image 1 below]", images=(PNG,)),
        ToolResult("3", "local_shell", "three"),
    ]
    last = messages[-2].parts
    assert last == (ToolCall("4", "view", "{}"), TextPart("No."))


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ({"type": "item_reference", "id": "x"}, "stores no items"),
        ({"role": "tool", "content": "x"}, "role must be"),
        ({"type": "function_call", "name": "view"}, "call_id must be"),
        ({"role": "user", "content": [{"type": "input_file"}]}, "input_file"),
        ({"role": "user", "content": [{**PICTURE, "file_id": "f"}]}, "input_image"),
        ({"role": "user", "content": 1}, "content must be"),
    ],
)
def test_items_that_cannot_be_read_are_refused(item: Any, told: str) -> None:
    with pytest.raises(BadRequest, match=told):
        read([item])


def test_items_must_be_a_text_or_items() -> None:
    with pytest.raises(BadRequest, match="input must be"):
        read({"a": 1})
