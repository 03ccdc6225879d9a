"""What becomes of a request whose first upstream fails: repeats, keys, fallback.

Each fault is played for ever to an upstream alone, to one with two keys, and to one
with another model behind it.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from byok.core.chat import ChatRequest, Message, Role, TextPart, ToolCall, ToolResult
from byok.core.errors import ByokError
from byok.core.events import Finish, FinishReason, Notice, StreamEvent, TextDelta
from byok.core.redact import Redactor
from byok.core.routing import Purpose
from byok.dialects.base import DIALECTS
from byok.settings.keys.ladder import KeyLadder, KeyLookup, KeyPool, UpstreamKey
from byok.upstream.ask import ask
from byok.upstream.base import Destination
from byok.upstream.client import HttpUpstream
from byok.upstream.fallback import AnotherModel, FallbackMemory
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.transport import Transports
from tests.fakes.asker import PATIENT, note_waits
from tests.fakes.ring import FakeRing, store_of
from tests.fakes.upstream import (
    FakeUpstream,
    Script,
    answer,
    delta,
    event,
    refusal,
)

ASKED = Message(Role.USER, (TextPart("Hi?"),))
CALLED = Message(Role.ASSISTANT, (ToolCall("c", "view", "{}"),))
RESULTS = (ASKED, CALLED, Message(Role.TOOL, (ToolResult("c", "view", "x"),)))
ENVIRON = {"BYOK_KEY_ONE__A": "key-a-0123456789", "BYOK_KEY_ONE__B": "key-b-0123456789"}


def in_stream(message: str, *before: bytes, **fields: Any) -> Script:
    return Script([*before, event({"error": {"message": message, **fields}})])


@dataclass(frozen=True)
class Fault:
    """A fault, how often an upstream is asked before another one, and what helps."""

    script: Script
    requests: int
    code: str
    by_key: bool = False
    elsewhere: bool = True
    waits: float | None = None  # each that was asked for
    passes: bool = False  # it is waited for as long as the patience lasts
    shown: str = ""


SAID = delta(content="One")
CALL = delta(tool_calls=[{"index": 0, "id": "c", "function": {"name": "view"}}])
FAULTS = {
    "429": Fault(refusal(429), 3, "upstream_rate_limit", by_key=True, passes=True),
    "429, wait": Fault(
        refusal(429, headers={"Retry-After": "20"}),
        1,
        "upstream_rate_limit",
        by_key=True,
        passes=True,
        waits=20,
    ),
    "429, long wait": Fault(
        refusal(429, headers={"Retry-After": "3600"}),
        1,
        "upstream_rate_limit",
        by_key=True,
    ),
    "401": Fault(refusal(401), 1, "upstream_auth", by_key=True),
    "500": Fault(refusal(500), 2, "upstream_failed"),
    "overload in a stream": Fault(
        in_stream("Sorry", type="overloaded_error"),
        3,
        "upstream_overloaded",
        passes=True,
    ),
    "reset": Fault(Script(before_head=True), 3, "upstream_cut"),
    "cut": Fault(Script([delta(content="")]), 2, "upstream_cut"),
    "window": Fault(
        refusal(400, "maximum context length is 9 tokens"), 1, "context_length"
    ),
    "bad request": Fault(refusal(400), 1, "upstream_refused", elsewhere=False),
    "overload after text": Fault(
        in_stream("Overloaded", SAID),
        1,
        "upstream_overloaded",
        elsewhere=False,
        shown="One",
    ),
    "limit after a tool call": Fault(
        in_stream("Rate limit", CALL), 1, "upstream_rate_limit", elsewhere=False
    ),
    "cut after text": Fault(
        Script([SAID]), 1, "upstream_cut", elsewhere=False, shown="One"
    ),
}


@dataclass
class Outcome:
    """What came of one request."""

    events: list[StreamEvent] = field(default_factory=list)
    code: str = ""

    @property
    def text(self) -> str:
        return "".join(e.text for e in self.events if isinstance(e, TextDelta))

    @property
    def notices(self) -> list[str]:
        return [e.text for e in self.events if isinstance(e, Notice)]


class Pair:
    """The upstream `one`, perhaps with two keys, and `two`, which answers."""

    def __init__(
        self,
        transports: Transports,
        one: FakeUpstream,
        two: FakeUpstream,
        dialect: str = "openai_chat",
    ) -> None:
        self.fakes = (one, two)
        self.slept: list[float] = []
        self._transports = transports
        ladder = KeyLadder(environ=ENVIRON, keyring=store_of(FakeRing()))
        urls = {"one": one.url, "two": two.url}
        if dialect != "openai_chat":
            urls["one"] = one.url.removesuffix("/v1")
        keys = [
            UpstreamKey(ladder, KeyLookup("one", one.url, label=label), Redactor())
            for label in ("a", "b")
        ]
        none = UpstreamKey(ladder, KeyLookup("two", two.url), Redactor())
        api = Api(DIALECTS[dialect]("openai_compatible"), urls["one"])
        self.with_keys = self._upstream("one", api, KeyPool(keys))
        self.alone = self._upstream("one", api, keys[0])
        other = Api(DIALECTS["openai_chat"]("openai_compatible"), urls["two"])
        self.two = self._upstream("two", other, none)
        self.memory = FallbackMemory()

    def _upstream(
        self, name: str, api: Api, keys: KeyPool | UpstreamKey
    ) -> HttpUpstream:
        spec = UpstreamSpec(name, (api,), timeouts=PATIENT)
        return HttpUpstream(
            spec, self._transports, keys, wait=note_waits(self.slept, spec)
        )

    def falling_back(self, first: HttpUpstream) -> Destination:
        chain = [Destination(first, "m"), Destination(self.two, "n")]
        recovery = AnotherModel(chain, self.memory, (Purpose.CHAT, "c-1", "m"))
        return replace(recovery.first, recoveries=(recovery,))

    async def ask(
        self,
        asked: HttpUpstream | Destination,
        messages: tuple[Message, ...] = (ASKED,),
    ) -> Outcome:
        outcome = Outcome()
        try:
            chat = ChatRequest(messages, conversation="c-1")
            if isinstance(asked, HttpUpstream):
                asked = Destination(asked, "m")
            async for batch in ask(asked, chat):
                outcome.events += batch
        except ByokError as error:
            outcome.code = error.code
        return outcome

    @property
    def asked(self) -> tuple[int, int]:
        """How often both were asked for an answer."""
        one, two = self.fakes
        return len([p for p in one.paths if p != "/api/show"]), len(two.paths)

    @property
    def keys(self) -> list[str]:
        """The letters of the keys that `one` was asked with."""
        sent = (head["Authorization"] for head in self.fakes[0].headers)
        return [key.removeprefix("Bearer key-")[0] for key in sent]


@pytest.fixture
async def two() -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as started:
        started.play(answer("Two."))
        yield started


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_outcome_of_a_fault_at_an_upstream_alone(
    fake: FakeUpstream, two: FakeUpstream, transports: Transports, fault: Fault
) -> None:
    fake.play(fault.script)
    pair = Pair(transports, fake, two)
    outcome = await pair.ask(pair.alone)
    assert (outcome.code, outcome.text) == (fault.code, fault.shown)
    if fault.passes:
        assert 240 < sum(pair.slept) <= 300
        assert pair.asked == (len(pair.slept) + 1, 0)
        assert pair.slept[0] == pytest.approx(fault.waits or 0.5)
        assert min(pair.slept) > (fault.waits or 0.5) - 0.001
        return
    assert pair.asked == (fault.requests, 0)
    at_once = int(fault.code == "upstream_cut" and fault.requests > 2)  # it was lost
    assert len(pair.slept) == fault.requests - 1 - at_once
    assert outcome.notices == []


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_outcome_of_a_fault_of_a_key(
    fake: FakeUpstream, two: FakeUpstream, transports: Transports, fault: Fault
) -> None:
    fake.play(fault.script, answer("Hi."))
    pair = Pair(transports, fake, two)
    outcome = await pair.ask(pair.with_keys)
    if not fault.by_key:
        assert set(pair.keys) == {"a"}
        repeats = fault.requests > 1 or fault.passes
        assert (outcome.text == "Hi.") is repeats
        return
    assert (outcome.text, pair.keys, pair.slept) == ("Hi.", ["a", "b"], [])
    assert [told.endswith("your keys is used.") for told in outcome.notices] == [True]
    again = await pair.ask(pair.with_keys)
    assert (again.text, again.notices, pair.keys) == ("Hi.", [], ["a", "b", "b"])


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_outcome_of_a_fault_with_another_model(
    fake: FakeUpstream, two: FakeUpstream, transports: Transports, fault: Fault
) -> None:
    fake.play(fault.script)
    pair = Pair(transports, fake, two)
    outcome = await pair.ask(pair.falling_back(pair.alone))
    assert pair.asked == (fault.requests, int(fault.elsewhere))
    if not fault.elsewhere:
        assert (outcome.code, outcome.text) == (fault.code, fault.shown)
        return
    assert (outcome.code, outcome.text) == ("", "Two.")
    assert outcome.notices[-1].startswith("byok:two:n answers instead of byok:one:m: ")
    again = await pair.ask(pair.falling_back(pair.alone), RESULTS)
    assert (again.text, again.notices) == ("Two.", [])
    assert pair.asked == (fault.requests, 2)


def sse(*events: dict[str, Any]) -> Script:
    return Script([event(one) for one in events])


BUSY = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
FIRST_EVENTS = {
    "anthropic": sse(BUSY),
    "gemini": sse({"error": {"code": 503, "message": "No", "status": "UNAVAILABLE"}}),
    "openai_responses": sse(
        {"type": "response.created", "response": {"id": "r"}},
        {
            "type": "response.failed",
            "response": {"error": {"code": "server_is_overloaded", "message": "No"}},
        },
    ),
    "ollama": Script(
        [b'{"error": "server overloaded"}\n'],
        headers={"Content-Type": "application/x-ndjson"},
    ),
}


@pytest.mark.parametrize("dialect", FIRST_EVENTS)
async def test_outcome_of_an_overload_as_the_first_event_in_every_dialect(
    fake: FakeUpstream, two: FakeUpstream, transports: Transports, dialect: str
) -> None:
    fake.play(FIRST_EVENTS[dialect])
    pair = Pair(transports, fake, two, dialect)
    outcome = await pair.ask(pair.falling_back(pair.alone))
    assert (outcome.text, pair.slept != []) == ("Two.", True)
    assert pair.asked == (3, 1)
    assert outcome.notices == [
        "byok:two:n answers instead of byok:one:m: it is overloaded."
    ]


def stopped(reason: str, **delta: Any) -> Script:
    """Script an answer of Anthropic's that stops for a reason, after no word."""
    stop = {"stop_reason": reason, **delta}
    return sse(
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    )


THOUGHT = delta(reasoning_content="Hm")
# The script, and the code with which the upstream fails; "" is an answer that ends.
WORDLESS = {
    "refusal": ("anthropic", stopped("refusal"), ""),
    "filter": ("openai_chat", Script(answer(finish="content_filter")), ""),
    "window": (
        "anthropic",
        stopped("model_context_window_exceeded"),
        "context_length",
    ),
    "window of GLM, after thoughts": (
        "openai_chat",
        Script([THOUGHT, *answer(finish="model_context_window_exceeded")]),
        "context_length",
    ),
}


@pytest.mark.parametrize("messages", [(ASKED,), RESULTS], ids=["question", "results"])
@pytest.mark.parametrize(("dialect", "script", "code"), WORDLESS.values(), ids=WORDLESS)
async def test_an_answer_without_a_word_is_explained_or_given_by_another_model(
    fake: FakeUpstream,
    two: FakeUpstream,
    transports: Transports,
    dialect: str,
    script: Script,
    code: str,
    messages: tuple[Message, ...],
) -> None:
    fake.play(script)
    pair = Pair(transports, fake, two, dialect)
    alone = await pair.ask(pair.alone, messages)
    assert (alone.code, alone.text, pair.asked) == (code, "", (1, 0))
    if not code:
        assert alone.notices
        assert alone.events[-1] == Finish(FinishReason.CONTENT_FILTER)
    helped = await pair.ask(pair.falling_back(pair.alone), messages)
    assert (helped.code, helped.text, pair.asked) == ("", "Two.", (2, 1))
    assert helped.notices[-1].startswith("byok:two:n answers instead of byok:one:m: ")
    ends = [event for event in helped.events if isinstance(event, Finish)]
    assert ends == [Finish(FinishReason.STOP)]
