"""Fitting a conversation into a number of bytes; whole runs: test_context_window.py."""

from collections.abc import Sequence

from byok.chat import ChatRequest, Message, Role, TextPart, ToolDefinition
from byok.upstream.fitting import ConversationFitter
from byok.window.estimate import weigh
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
