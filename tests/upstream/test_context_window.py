"""What fits passes untouched; what does not is compacted, the same way every turn."""

import asyncio
import logging
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from byok.core.chat import (
    ChatRequest,
    ContextPart,
    FimRequest,
    Message,
    Role,
    Sampling,
    TextPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from byok.core.errors import (
    UpstreamEmpty,
    UpstreamError,
    UpstreamGarbled,
    UpstreamRefused,
)
from byok.core.events import Finish, FinishReason, Notice, StreamEvent, TextDelta, Usage
from byok.upstream.base import Destination
from byok.upstream.context_window import ShorterConversation, WindowSource
from byok.upstream.fitting import ConversationFitter
from byok.upstream.own_questions import Summariser
from byok.upstream.window.compaction import CompactionPlan, plan
from byok.upstream.window.estimate import weigh, weigh_tools
from byok.upstream.window.transcript import summary_of
from tests.fakes.histories import agent, results, rules_broken_by, step, user
from tests.fakes.patience import PATIENCE
from tests.fakes.scripted import Answer, Scripted, events_of, said, too_long

SYSTEM = Message(Role.SYSTEM, (TextPart("Be exact. " * 20),))
TOOLS = (ToolDefinition("view", "Shows a file.", {"type": "object"}),)
K = 1000


def chat(steps: int, size: int = 2000, **fields: object) -> ChatRequest:
    messages = (SYSTEM, *agent(steps, size))
    return ChatRequest(messages, TOOLS, own_words="Port it.", **fields)  # type: ignore[arg-type]


def weight(request: ChatRequest) -> int:
    return sum(map(weigh, request.messages)) + weigh_tools(request.tools)


class Model(Scripted):
    """A model of `window` tokens with three bytes each, that counts and refuses."""

    def __init__(self, window: int, *, names: bool = True, counts: bool = True) -> None:
        super().__init__(self._answered)
        self.window, self._names, self._counts = window, names, counts
        self.refused = 0
        self.taken: list[ChatRequest] = []

    def _answered(self, request: ChatRequest) -> Answer:
        tokens = weight(request) // 3
        if tokens > self.window:
            self.refused += 1
            raise too_long(self.window, tokens) if self._names else too_long()
        self.taken.append(request)
        return said(tokens=tokens if self._counts else 0)


async def of_m(model: str) -> int:
    """Tell the window of one model."""
    return 8 * K if model == "m" else 0


def says(window: int, **source: Any) -> WindowSource:
    """Return what tells one window for all models."""

    async def look_up(model: str) -> int:
        return window

    return WindowSource(look_up, **source)


class Bench:
    """A fitted model, with summaries that are counted."""

    def __init__(self, model: Scripted, window: WindowSource | None = None) -> None:
        self.model = model
        self.dropped: list[Sequence[Message]] = []
        model.recoveries = (ShorterConversation(model, self._summarise, window),)

    async def _summarise(
        self, asker: Destination, dropped: Sequence[Message], room: int, longest: int
    ) -> str:
        assert asker == Destination(self.model, "m")
        assert 0 < longest < room
        self.dropped.append(dropped)
        return f"Summary {len(self.dropped)}."

    async def ask(self, request: ChatRequest) -> list[StreamEvent]:
        return await events_of(self.model, request)


def begins_with(longer: ChatRequest, shorter: ChatRequest) -> bool:
    return longer.messages[: len(shorter.messages)] == shorter.messages


# --- what fits ---


async def test_nobody_is_asked_for_a_window_that_is_not_needed() -> None:
    async def asked(model: str) -> int:
        pytest.fail("was asked")

    await Bench(Scripted(), WindowSource(lookup=asked)).ask(chat(0))


async def test_context_window_planning_does_not_block_other_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[int] = []

    def noting(*args: Any) -> CompactionPlan | None:
        threads.append(threading.get_ident())
        return plan(*args)

    monkeypatch.setattr("byok.upstream.fitting.plan", noting)
    for steps, here in ((20, True), (600, False)):
        await Bench(Scripted(), says(4000)).ask(chat(steps))
        assert (threads.pop() == threading.get_ident()) is here


# --- what does not ---


@pytest.mark.parametrize(
    "window",
    [
        says(8 * K),
        WindowSource(lookup=of_m),
    ],
    ids=["for all models", "for one"],
)
async def test_a_window_that_is_known_is_never_exceeded(window: WindowSource) -> None:
    model = Model(8 * K)
    bench = Bench(model, window)
    moved = 0  # turns in which the beginning of the prompt changed
    for steps in range(100, 160):
        request = chat(steps)
        await bench.ask(request)
        *_, before, sent = None, *model.taken
        moved += bool(before) and not begins_with(sent, before)
        assert sent.messages[0] is SYSTEM
        assert sent.messages[-2:] == request.messages[-2:]
        assert (sent.tools, sent.own_words) == (request.tools, "Port it.")
        assert rules_broken_by(sent.messages) == []
        texts = [p for m in sent.messages for p in m.parts if isinstance(p, TextPart)]
        assert TextPart("Port it.") in texts
    assert model.refused == 0
    assert 1 <= moved <= 20
    assert 2 <= len(bench.dropped) <= 1 + moved
    assert summary_of(bench.dropped[1][0]) == "Summary 1."


def saving(number: int) -> tuple[Message, ...]:
    """A step whose weight is in the call, which cannot be shortened."""
    call = ToolCall(f"save_{number}", "save", f'{{"text": "{"x" * 3000}"}}')
    result = ToolResult(call.id, call.name, "Saved.")
    return Message(Role.ASSISTANT, (call,)), Message(Role.TOOL, (result,))


@pytest.mark.parametrize("reading", [True, False], ids=["results", "calls"])
async def test_context_window_never_restores_what_was_shortened(reading: bool) -> None:
    model = Model(32 * K)
    bench = Bench(model, says(32 * K))
    messages = [SYSTEM, *agent(200, 2000)]
    before: dict[str, str] = {}
    for number in range(200, 270):
        messages += step(number, "y" * 5000) if reading else saving(number)
        await bench.ask(ChatRequest(tuple(messages), own_words="Port it."))
        now = results(model.taken[-1].messages)
        for call_id in before.keys() & now.keys():
            assert len(now[call_id]) <= len(before[call_id])
        before = now
    assert model.refused == 0
    assert bench.dropped, "the steps were not only shortened"


def asking(steps: int, code: int) -> ChatRequest:
    """Make a conversation whose last question comes with so many bytes of code."""
    parts = (ContextPart("x = 1\n" * (code // 6)), TextPart("Why?"))
    request = chat(steps)
    return replace(
        request,
        messages=(*request.messages, Message(Role.USER, parts)),
        question="Why?",
    )


def code_in(request: ChatRequest) -> int:
    parts = request.messages[-1].parts
    return sum(len(p.text) for p in parts if isinstance(p, ContextPart))


async def test_context_window_gives_added_code_the_room_that_is_left() -> None:
    bench = Bench(Model(10 * K), says(10 * K))
    await bench.ask(asking(5, 60 * K))
    [sent] = bench.model.chats
    assert sent.messages[:-1] == asking(5, 0).messages[:-1]  # nothing else gave way
    assert K < code_in(sent) < 20 * K


async def test_context_window_sends_a_changed_system_message() -> None:
    model = Model(8 * K)
    bench = Bench(model, says(8 * K))
    request = chat(100)
    await bench.ask(request)
    system = Message(Role.SYSTEM, (TextPart("Be brief."),))
    await bench.ask(ChatRequest((system, *request.messages[1:]), TOOLS))
    first, second = model.taken
    assert second.messages == (system, *first.messages[1:])
    assert len(bench.dropped) == 1


async def test_context_window_learning_does_not_move_a_compaction() -> None:
    """A ratio that grows would let the whole history through for a turn or two."""
    model = Model(8 * K)
    bench = Bench(model, says(8 * K))
    request = chat(13)
    await bench.ask(request)
    sent = model.taken[-1].messages
    assert sent != request.messages
    model.answer = lambda request: said(tokens=weight(request) // 5)
    for _ in range(9):
        await bench.ask(request)
        assert model.chats[-1].messages == sent
    fresh = ChatRequest((user("Another one."), *request.messages[2:]))
    await bench.ask(fresh)
    assert model.chats[-1].messages == fresh.messages, "all of that fits by now"


# --- refusals ---


async def test_context_window_unknown_sends_less_with_each_refusal() -> None:
    model = Model(16 * K, names=False, counts=False)
    bench = Bench(model)
    await bench.ask(chat(90))
    sizes = [weight(request) for request in model.chats]
    assert sizes == sorted(set(sizes), reverse=True)
    assert 2 <= len(sizes) <= 4
    for steps in range(91, 120):
        await bench.ask(chat(steps))
    assert model.refused < 6


async def test_context_window_passes_on_a_refusal_that_repeats_itself() -> None:
    def no(request: ChatRequest) -> Answer:
        raise too_long(8 * K)

    bench = Bench(Scripted(no))
    with pytest.raises(UpstreamRefused, match="too long"):
        await bench.ask(chat(100))
    assert len(bench.model.chats) == 2
    bench = Bench(Scripted(lambda request: no(request)))
    bench.model.answer = lambda request: _raise(too_long())
    with pytest.raises(UpstreamRefused, match="too long"):
        await bench.ask(chat(100))
    assert len(bench.model.chats) <= 4


def _raise(error: UpstreamError) -> Answer:
    raise error


@pytest.mark.parametrize(
    "messages",
    [
        (SYSTEM, user("x" * 90 * K)),
        (SYSTEM, *agent(9, 900), Message(Role.USER, (TextPart("x" * 90 * K),))),
    ],
    ids=["one question", "the newest words"],
)
@pytest.mark.parametrize("configured", [0, 8 * K])
async def test_context_window_leaves_the_refusal_of_an_uncuttable_request(
    messages: tuple[Message, ...], configured: int
) -> None:
    bench = Bench(Model(8 * K), says(configured))
    request = ChatRequest(messages)
    with pytest.raises(UpstreamRefused, match="too long"):
        await bench.ask(request)
    assert [c.messages for c in bench.model.chats] == [messages]
    assert bench.dropped == [], "no summary is paid for in vain"


@pytest.mark.parametrize("configured", [0, 8 * K])
async def test_context_window_cuts_instructions_that_leave_no_room(
    configured: int,
) -> None:
    bench = Bench(Model(8 * K), says(configured))
    long = Message(Role.SYSTEM, (TextPart("Be exact." + "x" * 90 * K + "Be kind."),))
    events = await bench.ask(ChatRequest((long, *agent(9, 900)), conversation="c"))
    system, *rest = bench.model.chats[-1].messages
    assert "Be exact.xx" in str(system) and "xxBe kind." in str(system)
    assert rest
    assert "left out their middle" in str(events)


@pytest.mark.parametrize(
    ("steps", "kind", "told"),
    [
        (100, UpstreamEmpty, True),
        (1, UpstreamEmpty, False),
        (100, UpstreamGarbled, False),
    ],
)
async def test_context_window_treats_an_empty_answer_as_a_possible_overflow(
    steps: int, kind: type[UpstreamGarbled], told: bool
) -> None:
    empty = kind("It was empty.")
    bench = Bench(Scripted(lambda request: _raise(empty)))
    with pytest.raises(UpstreamGarbled) as caught:
        await bench.ask(chat(steps))
    assert ("context_window" in caught.value.sentence) is told
    assert len(bench.model.chats) == 1


async def test_context_window_treats_an_answer_without_room_as_a_refusal() -> None:
    full: Answer = [[Usage(8 * K, 0), Finish(FinishReason.LENGTH)]]
    bench = Bench(Scripted())
    bench.model.answer = lambda request: full if len(bench.model.asked) == 1 else said()
    assert TextDelta("Fine.") in await bench.ask(chat(100))
    first, second = bench.model.chats
    assert weight(second) < weight(first)
    assert bench.model.closed == 2


@pytest.mark.parametrize(
    ("counted", "caps"), [(8000, [1000, 192]), (8150, [1000]), (9000, [1000])]
)
async def test_context_window_fits_the_answer_beside_what_cannot_be_cut(
    counted: int, caps: list[int]
) -> None:
    def answer(request: ChatRequest) -> Answer:
        if counted + (request.sampling.max_tokens or 0) > 8192:
            raise too_long(8192, counted)
        return said()

    bench = Bench(Scripted(answer))
    question = Message(Role.USER, (TextPart("x" * 20_000),))
    asked = ChatRequest((question,), sampling=Sampling(max_tokens=1000))
    if len(caps) == 1:
        with pytest.raises(UpstreamRefused):
            await bench.ask(asked)
    else:
        await bench.ask(asked)
    assert [request.sampling.max_tokens for request in bench.model.chats] == caps


# --- guesses ---


def notices(events: list[StreamEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, Notice)]


async def test_context_window_guess_is_reported_in_the_answer() -> None:
    bench = Bench(Model(8 * K, names=False, counts=False))
    (told,) = notices(await bench.ask(chat(100)))
    assert "by an estimate" in told
    assert "context_window" in told
    assert notices(await bench.ask(chat(101))) == []


# --- counts ---


async def test_context_window_learns_nothing_from_fim(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Another prompt is counted for them than that of the messages."""
    model = Scripted(lambda request: said(tokens=60 * K if request.fim else 0))
    bench = Bench(model, says(64 * K))
    for tokens_of in (FimRequest("f(", ")"), None):
        await bench.ask(replace(chat(3), fim=tokens_of))
    request = chat(40)
    await bench.ask(request)
    assert model.chats[-1] is request
    await bench.ask(replace(chat(50), fim=FimRequest("f(", ")")))
    assert "context_window" not in caplog.text


# --- a prompt that was cut without a word ---


async def test_a_silent_cut_is_told_in_the_first_turn_and_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    window = WindowSource(cure="Set num_ctx.")
    bench = Bench(Scripted(lambda request: said(tokens=2048)), window)
    with caplog.at_level(logging.INFO):
        events = await bench.ask(chat(50))
        assert notices(await bench.ask(chat(51))) == []
    [told] = notices(events)
    assert "2,048" in told and told.endswith("Set num_ctx.")
    assert isinstance(events[-1], Finish)
    [record] = caplog.records
    assert "2048" in record.getMessage()


async def test_a_server_that_tells_its_window_late_is_asked_after_the_answer() -> None:
    """The count alone would pass for that of a lighter tokenizer."""
    loaded: list[int] = []

    def answered(request: ChatRequest) -> Answer:
        loaded.append(8 * K)
        return said(tokens=min(8 * K, weight(request) // 4))

    async def lookup(model: str) -> int:
        return loaded[-1] if loaded else 0

    bench = Bench(Scripted(answered), WindowSource(lookup=lookup))
    [told] = notices(await bench.ask(chat(20)))
    assert "8,000" in told
    assert notices(await bench.ask(chat(21))) == []
    assert weight(bench.model.chats[-1]) < 8 * K * 3.5, "the next turn fits"


async def test_tools_that_fill_the_window_are_told_with_a_cure() -> None:
    big = ToolDefinition("big", "x" * 30 * K, {"type": "object"})
    bench = Bench(Scripted(), says(4 * K, cure="Set num_ctx."))
    request = ChatRequest((SYSTEM, user("Port it.")), (big,), conversation="a")
    [told] = notices(await bench.ask(request))
    assert "window of 4,000" in told and "Set num_ctx." in told
    assert notices(await bench.ask(request)) == []
    assert len(notices(await bench.ask(replace(request, conversation="b")))) == 1


async def test_a_refusal_for_too_many_tools_names_the_setting_that_helps() -> None:
    tools = tuple(
        ToolDefinition(f"tool{n}", "x" * 500, {"type": "object"}) for n in range(60)
    )
    bench = Bench(Model(8 * K), says(8 * K))
    with pytest.raises(UpstreamRefused) as caught:
        await bench.ask(ChatRequest((SYSTEM, user("Port it.")), tools))
    assert "compact_tools" in caught.value.hint and "60" in caught.value.hint
    with pytest.raises(UpstreamRefused) as caught:
        await bench.ask(ChatRequest((SYSTEM, user("x" * 90 * K)), tools[:2]))
    assert "compact_tools" not in caught.value.hint


# --- its behaviour as an upstream ---


async def test_context_window_summariser_does_not_recurse() -> None:
    async def nobody(model: str) -> Destination:
        raise AssertionError(model)

    model = Model(2 * K)
    summarise, window = Summariser("", nobody), says(2 * K)
    model.recoveries = (ShorterConversation(model, summarise, window),)
    async with asyncio.timeout(PATIENCE):
        await events_of(model, chat(100))
    assert len(model.taken) == 2, "a summary, then the conversation"
    assert summary_of(model.taken[-1].messages[1]) == "Fine."


# --- fitting a conversation into a number of bytes ---


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
