"""Fitting a conversation into a number of bytes; whole runs: test_context_window.py."""

from collections.abc import Sequence

import pytest

from byok.core.chat import ChatRequest, Message, Role, TextPart, ToolDefinition
from byok.upstream.fitting import ConversationFitter
from byok.upstream.window.estimate import weigh
from tests.fakes.histories import agent

SYSTEM = Message(Role.SYSTEM, (TextPart("Be exact."),))
VIEW = ToolDefinition("view", "x" * 2000, {"type": "object"})
CHAT = ChatRequest((SYSTEM, *agent(40, 2000)), (VIEW,), own_words="Port it.")


async def summarise(
    model: str, dropped: Sequence[Message], room: int, longest: int
) -> str:
    assert model == "m" and dropped
    return "Summary."


def make_fitter() -> ConversationFitter:
    return ConversationFitter("box", weigh, summarise)


async def test_what_fits_stays_the_same_object() -> None:
    for room in (0, 10**6):
        fitted = await make_fitter().fit(CHAT, "m", room)
        assert fitted.chat is CHAT and not fitted.is_new
        assert 2000 < fitted.fixed < 3000 < fitted.weight


async def test_a_room_that_the_tools_fill_changes_nothing() -> None:
    fitted = await make_fitter().fit(CHAT, "m", 1000)
    assert fitted.chat is CHAT and fitted.fixed > 1000


async def test_the_same_beginning_is_replaced_in_the_same_way() -> None:
    fitter = make_fitter()
    first = await fitter.fit(CHAT, "m", 30_000)
    again = await fitter.fit(CHAT, "m", 30_000)
    assert first.weight <= 30_000 and first.is_new
    assert again.chat.messages == first.chat.messages and not again.is_new
    assert fitter.sum(first.chat.messages) < first.weight


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


async def test_a_system_message_that_fits_is_not_cut() -> None:
    chat = with_system("x" * 10_000)
    fitted = await make_fitter().fit(chat, "m", 14_000)
    assert fitted.chat.messages[0] is chat.messages[0]
