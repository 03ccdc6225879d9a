"""byok runs its own tools within the answer; the client never sees their calls."""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest
from msgspec.structs import replace

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    JsonAnswer,
    Message,
    Origin,
    ProviderData,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    ToolUse,
)
from byok.core.errors import UpstreamError, UpstreamUnreachable
from byok.core.events import (
    Citation,
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallPlace,
    Usage,
)
from byok.core.record import RequestRecord, begin_record
from byok.upstream.ask import ask
from byok.upstream.base import Destination
from byok.upstream.own_tools import MAX_ROUNDS, OwnResult, OwnTools
from tests.fakes.patience import PATIENCE
from tests.fakes.scripted import Answer, Scripted, said

GREP = ToolDefinition("grep", "", {"type": "object"})
ASKED = Message(Role.USER, (TextPart("Which version?"),))
CHAT = ChatRequest((ASKED,), (GREP,), conversation="talk")
DONE, STOP = Finish(FinishReason.TOOL_CALLS), Finish(FinishReason.STOP)
SIGNED = ProviderData(Origin("d", "box", "m"), {"signature": "s"})


class Lookup:
    """A tool of byok's own that knows everything."""

    definition = ToolDefinition("look-up", "", {"type": "object"})

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.sources: tuple[Citation, ...] = (
            Citation("http://a/1", "One"),
            Citation("http://a/2", "Two"),
        )
        self.is_read = False
        self.pause: asyncio.Event | None = None
        self.open = 0

    async def run(self, arguments: Any, /) -> OwnResult:
        self.asked.append(arguments.get("q"))
        self.open += 1
        try:
            if self.pause is not None:
                await self.pause.wait()
        finally:
            self.open -= 1
        if arguments.get("q") == "fail":
            raise ZeroDivisionError
        text = f"All about {arguments.get('q')}."
        return OwnResult(
            text, f"Looked up {arguments.get('q')}.", self.sources, self.is_read
        )


def call(number: int, name: str = "look-up", q: str = "x") -> ToolCallDelta:
    return ToolCallDelta(number, f"c{number}", name, f'{{"q": "{q}"}}')


def calling(*calls: ToolCallDelta, text: str = "", end: StreamEvent = DONE) -> Answer:
    words: Answer = [[TextDelta(text)]] if text else []
    return [*words, [*calls], [Usage(10, 2), end]]


class Turns:
    """A model that plays answers, and a client that has its conversation."""

    def __init__(self, *answers: Answer | UpstreamError) -> None:
        self.left = list(answers)
        self.model = Scripted(self._next)
        self.tool = Lookup()
        self.own = OwnTools(lambda: [self.tool])
        self.record = begin_record(RequestRecord())

    def _next(self, chat: ChatRequest) -> Answer:
        answer = self.left.pop(0)
        if isinstance(answer, UpstreamError):
            raise answer
        return answer

    async def ask(self, chat: ChatRequest = CHAT) -> list[StreamEvent]:
        own = self.own.begin(chat)
        asked = own.request if own else chat
        asking = ask(Destination(self.model, "m"), asked, corrections=1, own=own)
        async with aclosing(asking) as batches:
            return [event async for batch in batches for event in batch]

    def sent(self, number: int = -1) -> tuple[Message, ...]:
        """The messages that the model got behind the question."""
        return self.model.chats[number].messages[1:]


def result(number: int, q: str = "x", more: str = "") -> Message:
    text = f"All about {q}.{more}"
    return Message(Role.TOOL, (ToolResult(f"c{number}", "look-up", text),))


def own_call(number: int, q: str = "x") -> ToolCall:
    return ToolCall(f"c{number}", "look-up", f'{{"q": "{q}"}}')


async def test_the_call_is_run_and_the_model_goes_on() -> None:
    turns = Turns(
        calling(call(1), call(2, q="y"), text="I look."), said("It is 2.", tokens=20)
    )
    turns.tool.sources = ()
    assert await turns.ask() == [
        TextDelta("I look."),
        Notice("Looked up x.", at_once=True),
        Notice("Looked up y.", at_once=True),
        ToolCallPlace("c1"),
        ToolCallPlace("c2"),
        TextDelta("\n\nIt is 2."),
        Usage(30, 4),
        STOP,
    ]
    parts = (TextPart("I look."), own_call(1), own_call(2, "y"))
    assert turns.sent() == (Message(Role.ASSISTANT, parts), result(1), result(2, "y"))
    assert turns.record.tool_calls == ["look-up", "look-up"]
    names = [[tool.name for tool in chat.tools] for chat in turns.model.chats]
    assert names == [["grep", "look-up"]] * 2


async def test_after_five_rounds_nothing_is_run_and_then_nothing_offered() -> None:
    rounds = [calling(call(n, q=str(n))) for n in range(MAX_ROUNDS + 2)]
    turns = Turns(*rounds)
    *_, last = await turns.ask()
    assert last == DONE
    assert turns.tool.asked == [*"01234"]
    offered = [len(chat.tools) for chat in turns.model.chats]
    assert offered == [2] * (MAX_ROUNDS + 1) + [1]
    assert "no more" in str(turns.sent(MAX_ROUNDS)[-1])
    [refused] = turns.sent()[-1].parts
    assert isinstance(refused, ToolResult)
    assert refused.is_error


async def test_of_many_calls_at_once_the_first_five_are_run() -> None:
    turns = Turns(calling(*(call(n, q=str(n)) for n in range(8))), said())
    await turns.ask()
    assert turns.tool.asked == [*"01234"]
    assert len(turns.sent()) == 9


async def test_a_tool_that_fails_is_a_result_and_a_line() -> None:
    turns = Turns(calling(call(1, q="fail")), said())
    events = await turns.ask()
    [failed] = turns.sent()[-1].parts
    assert isinstance(failed, ToolResult)
    assert failed.is_error
    assert [e.text for e in events if isinstance(e, Notice)] == ["look-up failed."]


async def test_a_call_of_the_clients_tool_goes_to_the_client_and_all_comes_back() -> (
    None
):
    first = calling(call(1), text="I look.")
    both = calling(call(2, q="y"), call(3, "grep"), text="And grep.")
    turns = Turns(first, both, said("Done."))
    events = await turns.ask()
    theirs = ToolCall("c3", "grep", '{"q": "x"}')
    assert [e for e in events if isinstance(e, ToolCall)] == [theirs]
    assert events[-1] == DONE
    assert turns.tool.asked == ["x", "y"]
    shown = TextPart("I look.\n\nAnd grep.")
    results = Message(Role.TOOL, (ToolResult("c3", "grep", "3 hits"),))
    history = (ASKED, Message(Role.ASSISTANT, (shown, theirs)), results)
    await turns.ask(replace(CHAT, messages=history))
    whole = (
        Message(Role.ASSISTANT, (TextPart("I look."), own_call(1))),
        result(1),
        Message(Role.ASSISTANT, (TextPart("And grep."), own_call(2, "y"), theirs)),
        result(2, "y"),
        results,
    )
    assert turns.sent() == whole
    again = (*history, Message(Role.ASSISTANT, (TextPart("Done."),)), ASKED)
    turns.left = [said()]
    await turns.ask(replace(CHAT, messages=again))
    assert turns.sent()[: len(whole)] == whole


@pytest.mark.parametrize(
    "changed",
    [
        {"conversation": "other"},
        {"tools": (GREP, Lookup.definition)},
        {"silent": True},
    ],
)
async def test_where_nothing_is_kept_the_history_stays_as_the_client_has_it(
    changed: dict[str, Any],
) -> None:
    turns = Turns(calling(call(1), call(2, "grep")), said())
    await turns.ask()
    theirs = Message(Role.ASSISTANT, (ToolCall("c2", "grep", '{"q": "x"}'),))
    results = Message(Role.TOOL, (ToolResult("c2", "grep", "3 hits"),))
    await turns.ask(replace(CHAT, messages=(ASKED, theirs, results), **changed))
    assert turns.sent() == (theirs, results)


async def test_conversations_without_an_id_are_told_apart_by_their_words() -> None:
    chat = replace(CHAT, conversation="")
    turns = Turns(calling(call(1), call(2, "grep")), said(), said())
    await turns.ask(chat)
    theirs = Message(Role.ASSISTANT, (ToolCall("c2", "grep", '{"q": "x"}'),))
    results = Message(Role.TOOL, (ToolResult("c2", "grep", "3 hits"),))
    await turns.ask(replace(chat, messages=(ASKED, theirs, results)))
    assert result(1) in turns.sent()
    other = Message(Role.USER, (TextPart("Another question."),))
    await turns.ask(replace(chat, messages=(other, theirs, results)))
    assert turns.sent() == (theirs, results)


PNG = ImagePart("image/png", "aW1hZ2U=")
FOLDERS = Message(Role.USER, (TextPart("[workspace]", is_aside=True),))


@pytest.mark.parametrize("told", [(), (FOLDERS,)], ids=["bare", "folders"])
@pytest.mark.parametrize(
    "question", [ASKED, Message(Role.USER, (PNG,))], ids=["words", "picture"]
)
async def test_rounds_count_through_the_requests_of_a_turn(
    told: tuple[Message, ...], question: Message
) -> None:
    turns = Turns()
    history: tuple[Message, ...] = (ASKED,)
    for n in range(MAX_ROUNDS + 1):
        turns.left = [calling(call(2 * n, q=str(n)), call(2 * n + 1, "grep"))]
        await turns.ask(replace(CHAT, messages=history))
        theirs = ToolCall(f"c{2 * n + 1}", "grep", '{"q": "x"}')
        results = Message(Role.TOOL, (ToolResult(theirs.id, "grep", "hit"),))
        history = (*history, Message(Role.ASSISTANT, (theirs,)), results, *told)
    assert turns.tool.asked == [*"01234"]
    turns.left = [calling(call(90, q="new")), said()]
    await turns.ask(replace(CHAT, messages=(*history, question)))
    assert turns.tool.asked[-1] == "new"


async def test_signed_thoughts_stay_with_their_call() -> None:
    thought: list[StreamEvent] = [ThinkingDelta("Hm."), ThinkingDelta("", SIGNED)]
    own: Answer = [[*thought, call(1)], [DONE]]
    theirs: Answer = [[*thought, call(2, "grep")], [DONE]]
    turns = Turns(own, theirs, said())
    events = await turns.ask()
    signed = [e for e in events if isinstance(e, ThinkingDelta) and e.provider_data]
    assert len(signed) == 1
    assert events.index(signed[0]) > events.index(ToolCallPlace("c1"))
    answer = turns.sent(1)[0]
    assert answer.parts == (ThinkingPart("Hm.", SIGNED), own_call(1))


async def test_calls_keep_their_places_among_thoughts() -> None:
    first: Answer = [[call(1)], [ThinkingDelta("Hm.", SIGNED)], [call(2)], [DONE]]
    turns = Turns(first, said())
    await turns.ask()
    parts = (own_call(1), ThinkingPart("Hm.", SIGNED), own_call(2))
    assert turns.sent()[0].parts == parts


@pytest.mark.parametrize(
    ("is_read", "text", "cited"),
    [
        (False, "See http://a/2 for it.", ["http://a/2"]),
        (False, "So it is.", ["http://a/1", "http://a/2"]),
        (True, "So it is.", ["http://a/1", "http://a/2"]),
    ],
)
async def test_the_answer_cites_what_was_named_or_read(
    is_read: bool, text: str, cited: list[str]
) -> None:
    turns = Turns(calling(call(1)), said(text))
    turns.tool.is_read = is_read
    events = await turns.ask()
    assert [e.url for e in events if isinstance(e, Citation)] == cited
    assert events[-1] == STOP


@pytest.mark.parametrize(
    "end", [FinishReason.LENGTH, FinishReason.CONTENT_FILTER], ids=str
)
async def test_calls_of_an_answer_that_is_not_whole_are_not_run(
    end: FinishReason,
) -> None:
    turns = Turns(calling(call(1), text="I look.", end=Finish(end)))
    events = await turns.ask()
    assert events[-1] == Finish(end)
    assert not any(isinstance(event, ToolCall) for event in events)
    assert turns.tool.asked == []


async def test_an_upstream_that_fails_after_the_call_is_told() -> None:
    turns = Turns(calling(call(1), text="I look."), UpstreamUnreachable("gone"))
    with pytest.raises(UpstreamUnreachable):
        await turns.ask()


async def test_a_broken_call_is_made_again_and_then_run() -> None:
    broken = ToolCallDelta(1, "c1", "look-up", r'{"q": "\w"}')
    turns = Turns(calling(broken), calling(call(2)), said())
    await turns.ask()
    assert turns.tool.asked == ["x"]


async def test_a_client_that_leaves_ends_the_run() -> None:
    turns = Turns(calling(call(1), call(2)))
    turns.tool.pause = asyncio.Event()
    asking = asyncio.create_task(turns.ask())
    async with asyncio.timeout(PATIENCE):
        while turns.tool.open < 2:
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert turns.tool.open == 0


@pytest.mark.parametrize(
    "changed",
    [
        {"silent": True},
        {"verbatim": True},
        {"whole": True},
        {"json_answer": JsonAnswer()},
        {"tool_choice": ToolChoice(ToolUse.NONE)},
        {"tool_choice": ToolChoice(ToolUse.REQUIRED)},
        {"tools": ()},  # of a client of /v1
        {"tools": (ToolDefinition("LookUp", "", {}),)},
        {"tools": (ToolDefinition("look_up", "", {}),)},
    ],
)
def test_jobs_and_clients_with_such_a_tool_get_none(changed: dict[str, Any]) -> None:
    own = OwnTools(lambda: [Lookup()])
    assert own.begin(CHAT) is not None
    assert own.begin(replace(CHAT, tools=(), prompt="chat")) is not None
    assert own.begin(replace(CHAT, **changed)) is None
