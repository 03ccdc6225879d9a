"""One question, whatever it takes: all recoveries in a row, and the rules they keep."""

import gc
import weakref
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import pytest
from msgspec.structs import replace

from byok.core.chat import (
    ChatRequest,
    Message,
    Role,
    TextPart,
    ToolCall,
    ToolDefinition,
)
from byok.core.errors import ByokError, RefusalKind, UpstreamRefused
from byok.core.events import (
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from byok.core.record import RequestRecord, begin_record
from byok.core.routing import Purpose
from byok.dialects.model_facts import ModelFacts
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.upstream.ask import ask
from byok.upstream.base import Destination
from byok.upstream.client import HttpUpstream
from byok.upstream.context_window import ShorterConversation
from byok.upstream.fallback import AnotherModel, FallbackMemory
from byok.upstream.prompt_changes import PromptChanges
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.transport import Transports
from tests.fakes.asker import PATIENT, Key, note_waits
from tests.fakes.histories import agent
from tests.fakes.scripted import Scripted, events_of, said
from tests.fakes.upstream import (
    DONE,
    FakeUpstream,
    Script,
    answer,
    delta,
    event,
    refusal,
    tool_answer,
)

VIEW = ToolDefinition("view", "", {"type": "object"})
HI = ChatRequest((Message(Role.USER, (TextPart("Hi?"),)),), (VIEW,))
LONG = ChatRequest(tuple(agent(100, 2000)), (VIEW,), "Port it.", conversation="c")
BUSY = UpstreamRefused("No.", kind=RefusalKind.OVERLOADED)
STOP = Finish(FinishReason.STOP)
GOOD, BROKEN = r'{"regex": "\\w"}', r'{"regex": "\w"}'
COUNTED = event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}})


class TwoKeys(Key):
    """A key that another one can replace, once."""

    def __init__(self) -> None:
        super().__init__("sk-a")
        self.rested: list[float] = []

    def replace(self, seconds: float) -> bool:
        self.rested.append(seconds)
        before, self.key = self.key, "sk-b"
        return before != self.key


class Two:
    """The upstream `one` with two keys and a window, and `two` behind it."""

    def __init__(
        self, transports: Transports, one: FakeUpstream, two: FakeUpstream
    ) -> None:
        self.slept: list[float] = []
        self.keys = TwoKeys()
        self._transports = transports
        first = self.http("one", one, self.keys)
        first.recoveries += (ShorterConversation(first, self._summarise),)
        chain = [
            Destination(first, "m"),
            Destination(self.http("two", two, Key()), "n"),
        ]
        topic = (Purpose.CHAT, "c", "byok:one:m")
        fallback = AnotherModel(chain, FallbackMemory(), topic)
        self.alone = chain[0]
        self.both = replace(chain[0], recoveries=(fallback,))

    def http(
        self, name: str, fake: FakeUpstream, key: Key, **fields: Any
    ) -> HttpUpstream:
        spec = UpstreamSpec(name, (Api(OpenAIChat(), fake.url),), PATIENT, **fields)
        return HttpUpstream(
            spec, self._transports, key, wait=note_waits(self.slept, spec)
        )

    async def _summarise(self, *_: object) -> str:
        return "What was said before."


async def collect(destination: Destination, chat: ChatRequest) -> list[StreamEvent]:
    async with aclosing(ask(destination, chat, corrections=1)) as batches:
        return [event async for batch in batches for event in batch]


def of_kind(events: Sequence[StreamEvent], kind: type) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


@pytest.fixture
async def two() -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as started:
        yield started


@pytest.fixture
def asked(fake: FakeUpstream, two: FakeUpstream, transports: Transports) -> Two:
    return Two(transports, fake, two)


async def test_every_recovery_helps_in_one_turn(
    fake: FakeUpstream, two: FakeUpstream, asked: Two
) -> None:
    fake.play(
        refusal(400, "Unsupported parameter: 'parallel_tool_calls'"),  # a remedy
        refusal(429),  # the other key
        refusal(400, "maximum context length is 9000 tokens"),  # less of it
        refusal(503, headers={"Retry-After": "4"}),  # a wait
        Script([event({"error": {"message": "Overloaded"}})]),  # another wait
        refusal(402),  # another model
    )
    broken = tool_answer("view", BROKEN)
    two.play(
        [delta(content="I look."), *broken[:-1], COUNTED, DONE],
        [*tool_answer("view", GOOD)[:-1], COUNTED, DONE],
    )
    record = begin_record(RequestRecord())
    events = await collect(asked.both, LONG)
    assert record.retried == [
        "upstream_bad_parameter",
        "upstream_rate_limit",
        "context_length",
        "upstream_failed",
        "upstream_overloaded",
        "upstream_quota",
        "upstream_bad_call",
    ]
    assert of_kind(events, TextDelta) == [TextDelta("I look.")]
    assert [call.arguments for call in of_kind(events, ToolCall)] == [GOOD]
    assert of_kind(events, Usage) == [Usage(18, 2)]
    assert events[-1] == Finish(FinishReason.TOOL_CALLS)
    assert [notice.text for notice in of_kind(events, Notice)] == [
        "one: it failed, waiting 4 s.",
        "byok:two:n answers instead of byok:one:m: its quota is used up.",
    ]
    assert len(fake.requests) == 6 and len(two.requests) == 2
    keys = [head["Authorization"][-1] for head in fake.headers]
    assert keys == ["a", "a", "b", "b", "b", "b"]
    assert asked.keys.rested == [60.0, 900.0]
    sizes = [len(body) for body in fake.bodies]
    assert sizes[2] > 2 * sizes[3]
    assert all("parallel_tool_calls" not in body for body in fake.requests[1:])
    assert asked.slept == [4.0, 1.0]


async def test_the_usage_of_all_attempts_is_told_once(
    fake: FakeUpstream, asked: Two
) -> None:
    blank = Script([delta(content=""), delta(finish="stop"), COUNTED, DONE])
    fake.play(blank, [*answer("Hi.")[:-1], COUNTED, DONE])
    assert of_kind(await collect(asked.alone, HI), Usage) == [Usage(18, 2)]
    fake.play(blank, refusal(400))
    events: list[StreamEvent] = []
    with pytest.raises(UpstreamRefused):
        async for batch in ask(asked.alone, HI):
            events += batch
    assert events == [Usage(9, 1)]


# What was shown


@pytest.mark.parametrize("end", ["eof", "reset"])
async def test_a_model_that_only_thought_is_asked_again(
    fake: FakeUpstream, asked: Two, end: str
) -> None:
    fake.play(Script([delta(reasoning_content="Hm")], end=end), answer("Hi."))
    thought, notice, *rest = await collect(asked.alone, HI)
    assert thought == ThinkingDelta("Hm")
    assert isinstance(notice, Notice) and notice.at_once and notice.is_restart
    assert rest == [TextDelta("Hi."), STOP]


async def test_a_refusal_of_its_length_after_thoughts_shortens_a_conversation(
    fake: FakeUpstream, asked: Two
) -> None:
    full = answer(finish="model_context_window_exceeded")
    fake.play(Script([delta(reasoning_content="Hm"), *full]), answer("Hi."))
    assert TextDelta("Hi.") in await collect(asked.alone, LONG)
    first, second = (len(body) for body in fake.bodies)
    assert second < first


async def test_an_answer_that_must_be_whole_is_held_back_until_its_end(
    fake: FakeUpstream, asked: Two
) -> None:
    cut = Script([delta(reasoning_content="Hm"), delta(content="Half")])
    fake.play(cut, [*answer("Whole.")[:-1], COUNTED, DONE])
    whole = replace(HI, whole=True)
    events = await collect(asked.alone, whole)
    assert events == [TextDelta("Whole."), Usage(9, 1), STOP]
    fake.play(cut)
    with pytest.raises(ByokError):
        async for batch in ask(asked.alone, whole):
            pytest.fail(f"half of it was shown: {batch}")


IN_TEXT = '<tool_call>{"name": "view", "arguments": {}}</tool_call>'


@pytest.mark.parametrize(
    ("printed_calls", "tools", "is_call"),
    [(None, (VIEW,), True), (None, (), False), (False, (VIEW,), False)],
)
async def test_printed_calls_are_read_unless_the_facts_forbid_it(
    fake: FakeUpstream,
    asked: Two,
    printed_calls: bool | None,
    tools: tuple[ToolDefinition, ...],
    *,
    is_call: bool,
) -> None:
    fake.play(answer(IN_TEXT))
    facts = {"m": ModelFacts("m", printed_calls=printed_calls)}
    upstream = asked.http("one", fake, Key(), facts=facts)
    events = await events_of(upstream, replace(HI, tools=tools))
    assert [call.name for call in of_kind(events, ToolCall)] == ["view"] * is_call
    assert (TextDelta(IN_TEXT) in events) is not is_call


async def test_the_record_tells_where_a_prompt_differs_from_the_last_one(
    asked: Two,
) -> None:
    record, [question] = begin_record(RequestRecord()), HI.messages
    alone = replace(asked.alone, recoveries=(PromptChanges(),))
    said_before = Message(Role.ASSISTANT, (TextPart("Ho."),))
    other = Message(Role.USER, (TextPart("Hm?"),))
    for messages, change in [
        ((question,), ""),
        ((question, said_before, question), ""),
        ((other, said_before, question), "messages[0]"),
    ]:
        await collect(alone, replace(HI, messages=messages, conversation="c"))
        assert record.prompt_change.split(",")[0] == change


# Memory


class Large(TextPart, frozen=True, weakref=True):
    """A part of which it can be seen whether it is still there."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("corrections", "freed", "failures"), [(0, True, 1), (1, False, 0)]
)
async def test_messages_are_released_when_nobody_can_send_them_again(
    corrections: int, freed: bool, failures: int
) -> None:
    left = [BUSY] * failures

    def answered(chat: ChatRequest) -> Any:
        if left:
            raise left.pop()
        return said()

    models = [Scripted(answered, name) for name in "ab"]
    chain = [Destination(model, "m") for model in models]
    fallback = AnotherModel(chain, FallbackMemory(), (Purpose.CHAT, "", ""))
    part = Large("x" * 9000)
    seen = weakref.ref(part)
    request = ChatRequest((Message(Role.USER, (part,)),), (VIEW,))
    destination = replace(chain[0], recoveries=(fallback,))
    stream = ask(destination, request, corrections=corrections)
    async with aclosing(stream) as batches:
        del part, request
        await anext(batches)
        for model in models:
            model.asked.clear()
        gc.collect()
        assert (seen() is None) is freed


@pytest.mark.slow
async def test_the_encoded_request_is_released_before_the_answer_ends(
    fake: FakeUpstream, asked: Two
) -> None:
    """It is the largest thing of a long conversation, and an answer takes minutes."""
    import tracemalloc

    text = "x" * 900_000
    request = ChatRequest((Message(Role.USER, (TextPart(text),)),))
    fake.play(Script([delta(content="One")], end="hang"))
    tracemalloc.start()
    try:
        async with aclosing(ask(asked.alone, request)) as batches:
            await anext(batches)
            gc.collect()
            written = tracemalloc.Filter(True, "*/wire/json_body.py")
            traces = tracemalloc.take_snapshot().filter_traces((written,)).traces
    finally:
        tracemalloc.stop()
    assert sum(trace.size for trace in traces) < 100_000
