"""A call that is no JSON is asked for once more; nothing is said or run twice."""

import itertools
from contextlib import aclosing

import pytest

from byok.core.chat import (
    ChatRequest,
    Message,
    Origin,
    ProviderData,
    Role,
    TextPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from byok.core.errors import UpstreamError, UpstreamRefused, UpstreamUnreachable
from byok.core.events import (
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
)
from byok.protocols.augment.history import call_ids
from byok.upstream.ask import ask
from byok.upstream.base import Destination
from byok.upstream.toolcalls.assemble import ToolCallAssembler
from tests.fakes.scripted import Answer, Scripted, said

GREP = ToolDefinition("grep", "", {"type": "object"})
CHAT = ChatRequest((Message(Role.USER, (TextPart("Search."),)),), (GREP,))
BROKEN = r'{"regex": "\w+"}'
GOOD = r'{"regex": "\\w+"}'
DONE = Finish(FinishReason.TOOL_CALLS)
STOP = Finish(FinishReason.STOP)


def calling(*arguments: str, text: str = "", end: StreamEvent = DONE) -> Answer:
    """An answer that says something and calls the tool."""
    calls = [
        ToolCallDelta(number, f"c{number}", "grep", raw)
        for number, raw in enumerate(arguments)
    ]
    words: list[list[StreamEvent]] = [[TextDelta(text)]] if text else []
    return [*words, [*calls], [Usage(10, 2, 3), end]]


class Play:
    """A model that plays answers one after the other."""

    def __init__(self, *answers: Answer | UpstreamError) -> None:
        self._left = list(answers)
        self.model = Scripted(self._next)

    def _next(self, chat: ChatRequest) -> Answer:
        answer = self._left.pop(0)
        if isinstance(answer, UpstreamError):
            raise answer
        return answer

    async def turn(
        self, chat: ChatRequest = CHAT, again: int = 1
    ) -> list[list[StreamEvent]]:
        numbers = itertools.count(1)

        def assembling(asked: ChatRequest) -> ToolCallAssembler:
            return ToolCallAssembler(
                asked.tools,
                new_id=lambda: f"new{next(numbers)}",
                taken=call_ids(asked.messages),
            )

        whom = Destination(self.model, "m")
        async with aclosing(ask(whom, chat, assembling, corrections=again)) as batches:
            out = [batch async for batch in batches if batch]
        assert not self._left, "an answer was not asked for"
        return out


async def test_a_call_that_is_no_json_is_asked_for_again_in_the_same_turn() -> None:
    play = Play(calling(BROKEN, text="I search."), calling(GOOD, text="Once more."))
    assert await play.turn() == [
        [TextDelta("I search.")],
        [TextDelta("\n\nOnce more.")],
        [Usage(20, 4, 6), ToolCall("new1", "grep", GOOD), DONE],
    ]
    first, second = play.model.chats
    assert first == CHAT
    asked, answer, told = second.messages
    assert (asked,) == CHAT.messages
    assert answer.parts == (TextPart("I search."), ToolCall("c0", "grep", "{}"))
    [result] = told.parts
    assert isinstance(result, ToolResult)
    assert r"\w+" in result.content


async def test_an_answer_in_words_instead_of_the_call_ends_the_turn() -> None:
    play = Play(calling(BROKEN), said("I give up."))
    assert await play.turn() == [
        [TextDelta("I give up.")],
        [Usage(10, 2, 3), STOP],
    ]


@pytest.mark.parametrize(
    "second",
    [
        pytest.param([[Usage(10, 2, 3), STOP]], id="nothing"),
        pytest.param([[TextDelta("I search.")], [Usage(10, 2, 3), STOP]], id="again"),
    ],
)
async def test_a_second_answer_without_anything_new_does_not_hide_the_broken_call(
    second: Answer,
) -> None:
    *_, end = await Play(calling(BROKEN, text="I search."), second).turn()
    [usage, notice, finish] = end
    assert usage == Usage(20, 4, 6)
    assert isinstance(notice, Notice) and notice.code == "tool_call_invalid"
    assert finish == DONE


@pytest.mark.parametrize("again", [0, 1, 3])
async def test_tool_call_retries_are_limited(again: int) -> None:
    play = Play(*(calling(BROKEN, text=letter) for letter in "abcd"[: again + 1]))
    out = await play.turn(again=again)
    texts = [e.text for batch in out for e in batch if isinstance(e, TextDelta)]
    assert "".join(texts) == "\n\n".join("abcd"[: again + 1])
    asked = play.model.chats[-1].messages
    assert [message.role for message in asked[1:]] == [
        *[Role.ASSISTANT, Role.TOOL] * again
    ]


async def test_beside_a_whole_call_nothing_is_asked_again() -> None:
    [*_, end] = await Play(calling(GOOD, BROKEN)).turn()
    assert end[1] == ToolCall("c0", "grep", GOOD)
    assert isinstance(end[2], Notice)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(calling('{"regex": "a', BROKEN), id="one of two cut"),
        calling(BROKEN, end=Finish(FinishReason.LENGTH)),  # at its limit
        calling(BROKEN, end=Finish(FinishReason.CONTENT_FILTER)),  # filtered
    ],
)
async def test_an_incomplete_tool_call_is_not_retried(answer: Answer) -> None:
    [*_, end] = await Play(answer).turn()
    assert any(isinstance(event, Notice) for event in end)


async def test_nothing_is_asked_again_where_the_tool_was_not_offered() -> None:
    chat = ChatRequest(CHAT.messages, (ToolDefinition("view", "", {}),))
    for one in (chat, ChatRequest(CHAT.messages)):
        [*_, end] = await Play(calling(BROKEN)).turn(one)
        assert isinstance(end[1], Notice)


class Breaking(Answer):
    """An answer whose connection is lost after its last event but the end."""

    error: UpstreamError = UpstreamUnreachable("gone")

    def __iter__(self):  # type: ignore[no-untyped-def]
        yield from self[:-1]
        raise self.error


HALF = ToolCallDelta(0, "c0", "grep", '{"regex": "a')
SIGNED = ThinkingDelta("Hm", ProviderData(Origin("d", "u", "m"), {"signature": "s"}))
SAID = TextDelta("I search.")


@pytest.mark.parametrize(
    ("before", "is_restart"),
    [([], True), ([ThinkingDelta("Hm")], True), ([SAID], True), ([SIGNED], False)],
    ids=["nothing", "thoughts", "text", "signed thoughts"],
)
async def test_a_call_that_was_lost_on_the_way_is_asked_for_again(
    before: list[StreamEvent], is_restart: bool
) -> None:
    lost = Breaking([*([event] for event in before), [HALF], [DONE]])
    play = Play(lost, calling(GOOD, text="I search."))
    out = [event for batch in await play.turn() for event in batch]
    assert play.model.chats == [CHAT, CHAT]
    assert out[: len(before)] == before
    assert [e.is_restart for e in out if isinstance(e, Notice)] == [is_restart]
    assert [e for e in out if isinstance(e, TextDelta)] == [SAID]
    assert out[-2:] == [ToolCall("c0", "grep", GOOD), DONE]


async def test_a_lost_call_is_not_asked_for_without_end_or_twice() -> None:
    lost = Breaking([[HALF], [DONE]])
    refused = Breaking([[HALF], [DONE]])
    refused.error = UpstreamRefused("no", upstream_status=400)
    placed = Breaking([[HALF], [SAID], [DONE]])  # the client has a place for it
    spoken = Breaking([[SAID], [DONE]])
    for answers, again in (([lost], 0), ([lost, lost], 1), ([refused], 1),
                           ([placed], 1), ([spoken], 1)):  # fmt: skip
        with pytest.raises(UpstreamError):
            await Play(*answers).turn(again=again)
