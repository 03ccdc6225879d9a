"""Another model answers: for which failures, when, and what is told of it."""

from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from byok.core.chat import ChatRequest, Message, Role, TextPart, ToolResult
from byok.core.errors import (
    BadRequest,
    ByokError,
    ConnectFailed,
    ContextLengthExceeded,
    KeyMissing,
    NotReady,
    RefusalKind,
    UpstreamEmpty,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
)
from byok.core.events import (
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
)
from byok.core.record import RequestRecord, begin_record
from byok.core.routing import Purpose
from byok.upstream.ask import ask
from byok.upstream.base import Destination, Plan, Recovery
from byok.upstream.catalog import Catalog, CatalogEntry
from byok.upstream.fallback import (
    AnotherModel,
    FallbackMemory,
    Fallbacks,
    Topic,
    helps_elsewhere,
)
from byok.upstream.router import Router
from tests.fakes.clock import Clock
from tests.fakes.scripted import Answer, Lister, Scripted, said

CHAT = ChatRequest((Message(Role.USER, (TextPart("Hi?"),)),))

RESULTS = ChatRequest((Message(Role.TOOL, (ToolResult("c", "view", "x"),)),))

# What an editor tells beside the results of tools is no question of the user's.
FOLDERS = Message(Role.USER, (TextPart("[workspace]", is_aside=True),))
TOLD_MORE = ChatRequest((*RESULTS.messages, FOLDERS))

TALK: Topic = (Purpose.CHAT, "c-1", "byok:a:m")

STOP = Finish(FinishReason.STOP)

BUSY = UpstreamRefused("It said sk-1.", kind=RefusalKind.OVERLOADED, hint="Wait.")

HERE = Notice("byok:b:m answers instead of byok:a:m: it is overloaded.")


class Broken(Scripted):
    """Upstream whose first answers break after some events."""

    def __init__(
        self,
        name: str,
        *batches: list[StreamEvent],
        error: UpstreamRefused | None = None,
        times: int = 99,
    ) -> None:
        super().__init__(name=name)
        self._batches = batches
        self._error = error or BUSY
        self._times = times

    async def send(self, plan: Plan) -> AsyncGenerator[list[StreamEvent], None]:
        self.asked.append((plan.outgoing, plan.model))
        for batch in self._batches:
            yield batch
        if len(self.asked) > self._times:
            yield [TextDelta("Fine."), STOP]
            return
        raise self._error


class Seen(Recovery):
    """Sees whether others stand ready each time when its upstream is asked."""

    def __init__(self) -> None:
        self.has_others: list[bool] = []

    async def prepare(self, plan: Plan) -> Plan:
        self.has_others.append(plan.has_others)
        return plan


class Chain:
    """Upstreams a, b and c; each gives the answers that a test put there."""

    def __init__(self, **scripts: list[Answer | ByokError]) -> None:
        self.clock = Clock()
        self.memory = FallbackMemory(self.clock)
        self.upstreams = {
            name: Scripted(partial(self._answer, script), name)
            for name, script in scripts.items()
        }

    @staticmethod
    def _answer(script: list[Answer | ByokError], chat: ChatRequest) -> Answer:
        assert chat in (CHAT, RESULTS, TOLD_MORE)
        given = script.pop(0) if len(script) > 1 else script[0]
        if isinstance(given, ByokError):
            raise given
        return given

    def destination(self, topic: Topic = TALK) -> Destination:
        chain = [Destination(upstream, "m") for upstream in self.upstreams.values()]
        recovery = AnotherModel(chain, self.memory, topic)
        return replace(recovery.first, recoveries=(recovery,))

    async def ask(
        self, topic: Topic = TALK, chat: ChatRequest = CHAT
    ) -> list[StreamEvent]:
        stream = ask(self.destination(topic), chat)
        return [event async for batch in stream for event in batch]

    @property
    def asked(self) -> dict[str, int]:
        return {name: len(one.asked) for name, one in self.upstreams.items()}


def refused(kind: RefusalKind, *, retryable: bool = False) -> UpstreamRefused:
    return UpstreamRefused("No.", kind=kind, retryable=retryable)


@pytest.mark.parametrize(
    ("error", "helps"),
    [
        (refused(RefusalKind.QUOTA), True),
        (refused(RefusalKind.NOT_FOUND), True),
        (refused(RefusalKind.CONTENT_FILTER), True),
        (refused(RefusalKind.BAD_MESSAGES), False),
        (refused(RefusalKind.UNKNOWN), False),
        (refused(RefusalKind.UNKNOWN, retryable=True), True),
        (ContextLengthExceeded("No."), True),
        (ConnectFailed("No."), True),
        (UpstreamTimeout("No."), True),
        (UpstreamGarbled("No."), True),
        (UpstreamEmpty("No."), True),
        (NotReady("The breaker is open."), True),
        (KeyMissing("No."), True),
        (BadRequest("No."), False),
        (ByokError("No."), False),
    ],
    ids=lambda value: getattr(value, "code", str(value)),
)
async def test_fallback_helps_where_another_upstream_may_answer(
    error: ByokError, helps: bool
) -> None:
    assert helps_elsewhere(error) is helps
    chain = Chain(a=[error], b=[said()])
    if helps:
        assert TextDelta("Fine.") in await chain.ask()
    else:
        with pytest.raises(type(error)):
            await chain.ask()
    assert chain.asked == {"a": 1, "b": int(helps)}


@pytest.mark.parametrize("results", [RESULTS, TOLD_MORE], ids=["bare", "folders"])
async def test_fallback_is_told_once_and_the_turn_stays(results: ChatRequest) -> None:
    chain = Chain(a=[BUSY], b=[said()])
    assert await chain.ask() == [HERE, TextDelta("Fine."), STOP]
    assert await chain.ask(chat=results) == [TextDelta("Fine."), STOP]
    assert chain.asked == {"a": 1, "b": 2}
    assert await chain.ask((Purpose.CHAT, "c-2", "byok:a:m")) == [
        HERE,
        TextDelta("Fine."),
        STOP,
    ]


async def test_the_next_message_of_the_user_goes_to_the_chosen_model() -> None:
    chain = Chain(a=[BUSY, said("Back.")], b=[said()])
    await chain.ask()
    assert await chain.ask() == [TextDelta("Back."), STOP]
    assert await chain.ask(chat=RESULTS) == [TextDelta("Back."), STOP]
    assert chain.asked == {"a": 3, "b": 1}


async def test_the_next_message_stays_while_the_chosen_model_asked_for_time() -> None:
    limit = UpstreamRefused("No.", kind=RefusalKind.RATE_LIMIT, retry_after=600.0)
    chain = Chain(a=[limit, said("Back.")], b=[said()])
    await chain.ask()
    assert await chain.ask() == [TextDelta("Fine."), STOP]
    chain.clock.now += 601
    assert await chain.ask() == [TextDelta("Back."), STOP]


async def test_fallback_voids_the_thoughts_of_who_failed() -> None:
    chain = Chain(a=[BUSY], b=[said()])
    thought = ThinkingDelta("Hm")
    chain.upstreams["a"] = Broken("a", [thought])
    void = replace(HERE, is_restart=True)
    assert await chain.ask() == [thought, void, TextDelta("Fine."), STOP]


async def test_who_is_only_busy_is_waited_for_when_the_others_fail() -> None:
    busy = refused(RefusalKind.OVERLOADED, retryable=True)
    chain, patience = Chain(a=[busy, said("Late.")], b=[ConnectFailed("No.")]), Seen()
    chain.upstreams["a"].recoveries = (patience,)
    assert await chain.ask() == [TextDelta("Late."), STOP]
    assert patience.has_others == [True, False]


async def test_fallback_comes_back_when_the_other_fails_too() -> None:
    chain = Chain(a=[BUSY, said("Back.")], b=[said(), ConnectFailed("No.")])
    await chain.ask()
    back = Notice("byok:a:m answers instead of byok:b:m: it cannot be reached.")
    assert (await chain.ask(chat=RESULTS))[:2] == [back, TextDelta("Back.")]
    assert await chain.ask() == [TextDelta("Back."), STOP]
    assert chain.asked == {"a": 3, "b": 2}


async def test_fallback_in_vain_tells_the_first_error_and_who_else_failed() -> None:
    chain = Chain(a=[BUSY], b=[ConnectFailed("No.")], c=[KeyMissing("No key.")])
    with pytest.raises(UpstreamRefused) as caught:
        await chain.ask()
    assert caught.value.message == BUSY.message
    assert caught.value.hint == (
        "Wait. The others failed too. byok:b:m: it cannot be reached. "
        "byok:c:m: it has no key here."
    )
    assert BUSY.hint == "Wait."


async def test_fallback_is_noted_in_the_record_and_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    record = begin_record(RequestRecord())
    chain = Chain(a=[BUSY], b=[said()])
    await chain.ask()
    assert (record.upstream, record.model) == ("b", "m")
    assert "asking byok:b:m: a failed: refused with an event" in caplog.text
    assert "sk-1" not in caplog.text


NEAR, FAR, CLOUD = "byok:near:n", "byok:far:f", "byok:cloud:c"

ALIASES = {"best": CLOUD}


def fallbacks(folder: Path, named: list[str]) -> Fallbacks:
    upstreams = {name: Lister(name, "m") for name in ("near", "far", "cloud", "lan")}
    catalog = Catalog(map(CatalogEntry, upstreams.values()), folder / "models.json")
    router = Router(upstreams, catalog, FAR, ALIASES)
    lists = {Purpose.CHAT: named}
    return Fallbacks(
        router,
        lambda purpose: lists.get(purpose, []),
        {"near", "lan"},
        FallbackMemory(Clock()),
    )


@pytest.mark.parametrize(
    ("chosen", "named", "chain"),
    [
        pytest.param(FAR, [], None, id="none is named"),
        pytest.param(FAR, [CLOUD, FAR, NEAR], [FAR, CLOUD, NEAR], id="each once"),
        pytest.param(FAR, ["best", CLOUD, "best"], [FAR, CLOUD], id="an alias"),
        pytest.param("best", [CLOUD, NEAR], [CLOUD, NEAR], id="an alias is chosen"),
        pytest.param(NEAR, [CLOUD, FAR], None, id="what is local stays so"),
        pytest.param(NEAR, [NEAR, CLOUD], [NEAR, CLOUD], id="unless the list has it"),
        pytest.param("byok:gone:m", [CLOUD], None, id="not configured"),
        pytest.param("", [CLOUD], [FAR, CLOUD], id="the default model"),
    ],
)
async def test_fallback_asks_models_that_the_user_named(
    tmp_path: Path, chosen: str, named: list[str], chain: list[str] | None
) -> None:
    made = fallbacks(tmp_path, named)
    destination = await made.router.choose(chosen)
    found = await made.prepare(destination, Purpose.CHAT, "c")
    if chain is None:
        assert found is destination
        return
    asked = await made.chain_of(destination, Purpose.CHAT)
    assert [one.model_id for one in asked] == chain
    assert found.model_id == chain[0]
    assert found.recoveries


async def test_fallback_is_named_for_each_purpose(tmp_path: Path) -> None:
    made = fallbacks(tmp_path, [CLOUD])
    destination = await made.router.choose(FAR)
    assert await made.prepare(destination, Purpose.EDIT) is destination


async def test_fallback_begins_with_the_model_that_a_conversation_stays_with(
    tmp_path: Path,
) -> None:
    made = fallbacks(tmp_path, [CLOUD])
    destination = await made.router.choose(FAR)
    made.memory.stay_with((Purpose.CHAT, "c", FAR), CLOUD)
    found = await made.prepare(destination, Purpose.CHAT, "c")
    assert (found.upstream.name, found.model, found.model_id) == ("cloud", "c", CLOUD)
    other = await made.prepare(destination, Purpose.CHAT, "d")
    assert other.model_id == FAR
