"""Asking one question of the probe, and noting what came and what was refused."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct, field

from byok.core.chat import ChatRequest, Part, ThinkingPart, ToolCall, text_of
from byok.core.errors import ByokError, UpstreamError, UpstreamRefused, UpstreamTimeout
from byok.core.events import StreamEvent, TextDelta, ThinkingDelta, Usage
from byok.core.record import RequestRecord, begin_record
from byok.dialects.model_facts import SourcedFacts
from byok.upstream.ask import ask
from byok.upstream.base import Destination, Plan, Recovery
from byok.upstream.client import HttpUpstream
from byok.upstream.probe.report import ProbeOutcome
from byok.upstream.reasons import reason_of
from byok.upstream.toolcalls.assemble import answer_parts

_STEP, _KEPT = 0.01, 100  # seconds between two looks at the clock; looks
_TOO_LATE = 0.03  # seconds in which no answer of thirty numbers is written


class ProbeAnswer(Struct):
    """What came of one question.

    `refusals` are those that byok met on the way, and `error` is set if there was no
    answer. `parts` are the blocks of the answer. `reads` counts the network reads that
    brought text or reasoning, and `late` is by how many seconds this process was late
    shortly before the first of them.
    """

    parts: tuple[Part, ...] = ()
    usage: Usage | None = None
    refusals: list[UpstreamError] = field(default_factory=list)
    error: ByokError | None = None
    reads: int = 0
    late: float = 0.0
    requests: int = 0
    first: float = 0.0
    seconds: float = 0.0

    @property
    def text(self) -> str:
        """The visible text."""
        return text_of(self.parts, "")

    @property
    def is_streamed(self) -> bool | None:
        """Whether the answer came in pieces; None if nobody can tell.

        Where this process did not run in between, pieces arrive together, too.
        """
        if self.reads > 1:
            return True
        return None if self.late > _TOO_LATE else False

    @property
    def calls(self) -> list[ToolCall]:
        """The tool calls that are whole."""
        return [part for part in self.parts if isinstance(part, ToolCall)]

    @property
    def thinks(self) -> bool:
        """Whether the model showed or counted any reasoning."""
        shown = any(isinstance(part, ThinkingPart) for part in self.parts)
        return shown or bool(self.usage and self.usage.reasoning_tokens)

    @property
    def refusal(self) -> UpstreamRefused | None:
        """The first refusal of the request itself, which no repeat would help."""
        refused = (e for e in self.refusals if isinstance(e, UpstreamRefused))
        return next((error for error in refused if not error.retryable), None)


class Prober:
    """Asks one model, with facts that a question may assume."""

    def __init__(
        self, upstream: HttpUpstream, model: str, *, seconds: float = 120.0
    ) -> None:
        self._upstream = upstream
        self.model = model
        self._seconds = seconds
        self._refusals: list[UpstreamError] = []
        upstream.recoveries = (_NotedFailures(self._refusals), *upstream.recoveries)

    @property
    def facts(self) -> SourcedFacts:
        """What is known about the model by now."""
        return self._upstream.known.sourced_facts(self.model)

    @property
    def dialect(self) -> str:
        """The name of the dialect in which the model is asked."""
        return self.facts.facts.dialect or self._upstream.spec.api.dialect.name

    async def window(self) -> int:
        """Return the window in tokens that the server reports, 0 for none."""
        return await self._upstream.window(self.model)

    async def ask(self, chat: ChatRequest, **assumed: Any) -> ProbeAnswer:
        """Ask; `assumed` are values of facts that count for this question alone.

        So do the ways around refusals that byok finds: the next question would not send
        what it is to try out.
        """
        saved = self._upstream.remedies.save()
        answer = await self.ask_first(chat, **assumed)
        self._upstream.remedies.restore(saved)
        return answer

    async def ask_first(self, chat: ChatRequest, **assumed: Any) -> ProbeAnswer:
        """Ask, and let later questions begin with the ways around refusals."""
        answer = ProbeAnswer()
        collected = _Collected()
        record = begin_record(RequestRecord())
        self._refusals.clear()
        began = time.monotonic()
        self._upstream.known.assume(**assumed)
        watch = LatenessWatch(time.monotonic)
        watching = asyncio.ensure_future(watch.run())
        asked = Destination(self._upstream, self.model)
        try:
            async with asyncio.timeout(self._seconds):
                async for batch in ask(asked, chat):
                    if collected.take(batch):
                        if not answer.reads:
                            answer.first = time.monotonic() - began
                            answer.late = watch.lateness()
                        answer.reads += 1
        except TimeoutError:
            answer.error = UpstreamTimeout("it did not end its answer in time.")
        except ByokError as error:
            answer.error = error
        finally:
            watching.cancel()
            self._upstream.known.assume()
        answer.seconds = time.monotonic() - began
        answer.refusals = [*self._refusals]
        answer.requests = record.attempts
        answer.parts, answer.usage = collected.parts(), collected.usage
        return answer


class _NotedFailures(Recovery):
    """Helps with nothing: it notes the failures, also those with a way around."""

    def __init__(self, failures: list[UpstreamError]) -> None:
        self._failures = failures

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        if isinstance(failure, UpstreamError):
            self._failures.append(failure)
        return failure


class LatenessWatch:
    """Measures by how much a process is late because others have the processors."""

    def __init__(
        self,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._last = clock()
        self._late: deque[tuple[float, float]] = deque(maxlen=_KEPT)  # when, how much

    async def run(self) -> None:
        """Measure until the task is cancelled."""
        while True:
            await self._sleep(_STEP)
            now = self._clock()
            self._late.append((now, now - self._last - _STEP))
            self._last = now

    def lateness(self) -> float:
        """Return the longest lateness of the last second, in seconds."""
        now = self._clock()
        recent = [late for when, late in self._late if now - when < 1.0]
        return max(0.0, now - self._last - _STEP, *recent)


class _Collected:
    """The events of one answer, joined to its parts."""

    def __init__(self) -> None:
        self._pieces: list[str | ThinkingDelta] = []
        self._calls: list[ToolCall] = []
        self.usage: Usage | None = None

    def take(self, batch: list[StreamEvent]) -> bool:
        """Take the events of a network read; tell whether it brought text."""
        before = len(self._pieces)
        for event in batch:
            match event:
                case TextDelta(text=text) if text:
                    self._pieces.append(text)
                case ThinkingDelta():
                    self._pieces.append(event)
                case ToolCall():
                    self._calls.append(event)
                case Usage():
                    self.usage = event
                case _:
                    pass
        return len(self._pieces) > before

    def parts(self) -> tuple[Part, ...]:
        return (*answer_parts(self._pieces, self._calls),)


# What a case of the probe finds, and what it hands on to later cases.


class ProbeState(Struct):
    """What earlier cases left for later ones: the answer that called a tool."""

    called: tuple[Part, ...] = ()
    thinks: bool = False


class Finding(Struct, frozen=True):
    """What a case found: outcome, remark, facts, and the answers that it got."""

    outcome: ProbeOutcome
    detail: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    answers: tuple[ProbeAnswer, ...] = ()


def failure(answer: ProbeAnswer, facts: dict[str, Any] | None = None) -> Finding:
    """Return what an answer that did not come means."""
    error = answer.refusal or answer.error
    assert error is not None  # noqa: S101 - the caller has seen it
    outcome = ProbeOutcome.REFUSED if answer.refusal else ProbeOutcome.FAILED
    shown = facts if answer.refusal else None
    return Finding(outcome, describe(error), shown or {}, (answer,))


def describe(error: ByokError) -> str:
    """Return an error in words of byok, with its code."""
    return f"{reason_of(error)} ({error.code})"
