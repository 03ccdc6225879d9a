"""Blocks of Messages: texts, pictures, calls, results, reasoning."""

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
from byok.protocols.v1.messages import add_message, read_system
from byok.protocols.v1.turns import Turns

DATA = ProviderData(Origin("anthropic", "box", "m"), {"signature": "s"})
PNG = ImagePart("image/png", "AAAA")
SOURCE = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
PICTURE = {"type": "image", "source": SOURCE}


def read(*messages: dict[str, Any]) -> tuple[tuple[Message, ...], list[str]]:
    turns = Turns()
    left_out = [what for message in messages for what in add_message(turns, message)]
    return turns.messages(), left_out


def say(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def test_blocks_of_a_conversation() -> None:
    sealed = write_encrypted(DATA)
    url = {"type": "url", "url": "data:image/png;base64,AAAA"}
    messages, left_out = read(
        {"role": "user", "content": [say("See"), PICTURE, {**PICTURE, "source": url}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": sealed},
                {"type": "redacted_thinking", "data": "of Anthropic"},
                say("Ok."),
                {"type": "server_tool_use", "id": "s"},
                {"type": "tool_use", "id": "1", "name": "view", "input": {"a": 1}},
                {"type": "tool_use", "id": "2", "name": "view"},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "2", "content": "two"},
                {
                    "type": "tool_result",
                    "tool_use_id": "1",
                    "content": [say("one"), PICTURE],
                    "is_error": True,
                },
                say("Go on."),
            ],
        },
        {"role": "assistant", "content": "Done."},
        {"role": "system", "content": "Be brief."},
    )
    assert left_out == ["the block 'server_tool_use'"]
    assert messages == (
        Message(Role.USER, (TextPart("See"), PNG, PNG)),
        Message(
            Role.ASSISTANT,
            (
                ThinkingPart("hm", DATA),
                ThinkingPart(""),
                TextPart("Ok."),
                ToolCall("1", "view", '{"a":1}'),
                ToolCall("2", "view", "{}"),
            ),
        ),
        Message(
            Role.TOOL,
            (
                ToolResult(
                    "1", "view", "one\n[image 1 below]", is_error=True, images=(PNG,)
                ),
            ),
        ),
        Message(Role.TOOL, (ToolResult("2", "view", "two"),)),
        Message(Role.USER, (TextPart("Go on."),)),
        Message(Role.ASSISTANT, (TextPart("Done."),)),
        Message(Role.USER, (TextPart("[instructions]\nBe brief."),)),
    )


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (
            {
                "type": "document",
                "title": "T",
                "source": {"type": "text", "data": "words"},
            },
            "T\nwords",
        ),
        (
            {
                "type": "search_result",
                "title": "T",
                "source": "S",
                "content": [say("words")],
            },
            "T\nS\nwords",
        ),
        ({"type": "tool_reference", "tool_name": "view"}, "view"),
    ],
)
def test_blocks_that_are_texts(block: dict[str, Any], text: str) -> None:
    messages, _ = read({"role": "user", "content": [block]})
    assert messages[0].parts == (TextPart(text),)


def test_blocks_of_the_system() -> None:
    assert read_system({}) == ""
    assert read_system({"system": "Be brief."}) == "Be brief."
    assert read_system({"system": [say("Be"), say("brief.")]}) == "Be\n\nbrief."


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ({"role": "tool", "content": "x"}, "role must be"),
        ({"role": "user", "content": [{"type": "container_upload"}]}, "container"),
        (
            {
                "role": "user",
                "content": [{"type": "document", "source": {"type": "base64"}}],
            },
            "document",
        ),
        (
            {
                "role": "user",
                "content": [{"type": "image", "source": {"type": "file"}}],
            },
            "source 'file'",
        ),
        ({"role": "user", "content": 1}, "content must be"),
        ({"role": "assistant", "content": [{"type": "tool_use"}]}, "id of a tool_use"),
    ],
)
def test_blocks_that_cannot_be_read_are_refused(
    message: dict[str, Any], told: str
) -> None:
    with pytest.raises(BadRequest, match=told):
        read(message)
