"""Fitting a conversation into a number of bytes; whole runs: test_context_window.py."""

from collections.abc import Sequence

import pytest

from byok.core.chat import ChatRequest, Message, Role, TextPart, ToolDefinition
from byok.upstream.fitting import ConversationFitter
from byok.upstream.window.estimate import weigh

VIEW = ToolDefinition("view", "x" * 2000, {"type": "object"})


async def summarise(
    model: str, dropped: Sequence[Message], room: int, longest: int
) -> str:
    assert model == "m" and dropped
    return "Summary."


def make_fitter() -> ConversationFitter:
    return ConversationFitter("box", weigh, summarise)


def with_system(text: str, question: str = "Where?") -> ChatRequest:
    said = Message(Role.SYSTEM, (TextPart(text),))
    asked = Message(Role.USER, (TextPart(question),))
    return ChatRequest((said, asked), (VIEW,), own_words=question)


@pytest.mark.parametrize("letter", ["x", "é", "語", "\U0001f981"])
@pytest.mark.parametrize("room", [5000, 8192, 30_000])
async def test_a_system_message_without_end_leaves_room_for_the_question(
    room: int, letter: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "byok")
    chat = with_system("Be exact." + letter * 500_000 + "Be kind.")
    fitted = await make_fitter().fit(chat, "m", room)
    system, question = fitted.chat.messages
    assert question is chat.messages[1]
    said = "".join(getattr(part, "text", "") for part in system.parts)
    assert said.startswith("Be exact.") and said.endswith("Be kind.")
    assert fitted.weight < room
    assert "the system message for box is cut" in caplog.text


async def test_a_system_message_is_cut_alike_while_the_room_changes_a_little() -> None:
    chat = with_system("x" * 500_000)
    cuts = [await make_fitter().fit(chat, "m", room) for room in (20_000, 21_000)]
    assert cuts[0].chat == cuts[1].chat
