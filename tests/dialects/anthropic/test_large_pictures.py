"""A picture is known by its bytes, so that it is replaced in later requests, too."""

import pytest

from byok.core.chat import ChatRequest, ImagePart, Message, TextPart, ToolResult
from byok.dialects.anthropic.remedies import REMEDIES
from byok.dialects.error_bodies import refusal_of
from byok.dialects.remedies import RefusedRequest, Remedy, find_remedy, rewrite_chat
from tests.fakes.histories import PNG
from tests.fakes.messages_api import CALL, assistant, encode, result, user

SMALL = ImagePart("image/png", "AAAA")


def find(message: str, *messages: Message) -> Remedy | None:
    error = refusal_of({"error": {"message": message}}, 400)
    body = encode(*messages).body
    return find_remedy(
        REMEDIES, RefusedRequest(body, error, chat=ChatRequest(messages))
    )


def test_only_the_same_picture_is_replaced_wherever_it_is() -> None:
    place = "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum"
    remedy = find(place, user("?", PNG, "b", SMALL))
    assert remedy
    later = ChatRequest((user("?", SMALL, "b", PNG), assistant("Yes."), user("!")))
    changed, (notice,) = rewrite_chat(REMEDIES, later, [remedy], new=[remedy])
    question, *others = changed.messages
    assert question.parts[:2] == (TextPart("?"), SMALL)
    assert [type(part) for part in question.parts[2:]] == [TextPart]
    assert (*others,) == later.messages[1:]
    assert "A picture is too large" in notice


def test_a_large_picture_of_a_result_becomes_a_sentence_below_it() -> None:
    place = "messages.2.content.0.tool_result.content.1.image.source: image exceeds 5"
    messages = (user("?"), assistant(CALL), result(images=(PNG, SMALL)))
    remedy = find(place, *messages)
    assert remedy
    changed, _ = rewrite_chat(REMEDIES, ChatRequest(messages), [remedy])
    (part,) = changed.messages[2].parts
    assert isinstance(part, ToolResult) and part.images == (SMALL,)
    assert part.content.startswith("ok\n\n[a picture stood here; it is too large")


@pytest.mark.parametrize(
    "message",
    [
        "image exceeds 5 MB maximum",
        "messages.9.content.1: image exceeds 5 MB maximum",
    ],
)
def test_without_the_place_of_a_large_picture_nothing_is_changed(message: str) -> None:
    assert find(message, user("?", PNG)) is None
