"""The questions of the probe: small, and what they say they are."""

import base64
import zlib

import pytest

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolUse,
)
from byok.upstream.probe import questions


def length(chat: ChatRequest) -> int:
    parts = (part for message in chat.messages for part in message.parts)
    return sum(len(part.text) for part in parts if isinstance(part, TextPart))


@pytest.mark.parametrize(
    "chat",
    [
        questions.count_to_thirty(),
        questions.call_tool(),
        questions.call_tools(),
        questions.show_picture(),
    ],
)
def test_a_question_is_small_and_its_answer_limited(chat: ChatRequest) -> None:
    assert length(chat) < 300
    assert chat.sampling.max_tokens == questions.MAX_TOKENS
    assert chat.messages[-1].role is Role.USER


def test_a_tool_may_have_to_be_called() -> None:
    assert questions.call_tool().tool_choice.use is ToolUse.AUTO
    assert questions.call_tool(ToolUse.REQUIRED).tool_choice.use is ToolUse.REQUIRED


def test_every_call_gets_its_result() -> None:
    said = (ThinkingPart("Hm."), ToolCall("a", "f", "{}"), ToolCall("b", "f", "{}"))
    chat = questions.go_on(said)
    roles = [message.role for message in chat.messages]
    assert roles == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL]
    assert chat.messages[2].parts == said
    assert chat.tools


def test_the_picture_is_a_png_of_one_colour() -> None:
    *_, picture = questions.show_picture().messages[-1].parts
    assert isinstance(picture, ImagePart)
    data = base64.b64decode(picture.data)
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    start = data.index(b"IDAT") + 4
    rows = zlib.decompressobj().decompress(data[start:])
    assert rows == (b"\x00" + b"\xff\x00\x00" * 64) * 64


def test_a_shared_prefix_differs_at_its_end_alone_and_fits_the_window() -> None:
    one, two = questions.share_prefix(1), questions.share_prefix(2)
    assert length(one) == length(two) > 20_000
    assert one.conversation == two.conversation != ""
    assert length(questions.share_prefix(1, 4096)) < 4096 * 2
    assert length(questions.share_prefix(1, 1_000_000)) == length(one)


def test_what_exceeds_a_window_has_more_words_than_it_has_tokens() -> None:
    [*_, message] = questions.exceed_window(100).messages
    [part] = message.parts
    assert isinstance(part, TextPart)
    assert len(part.text.split()) > 100
