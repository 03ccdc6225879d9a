"""Asks one question of the probe, and records its answer and its refusals."""

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

_MEASURE_SECONDS, _MAX_MEASURES = 0.01, 100  # of the lateness of this process
_MAX_LATENESS = 0.03  # seconds; no model writes thirty numbers within it


class ProbeAnswer(Struct):
    """The outcome of one question; times are in seconds.

    Attributes:
        parts: the blocks of the answer.
        usage: its token counts, if the upstream sent any.
        refusals: the refusals of the request, also those that byok recovered from.
        error: why there is no answer.
        reads: the number of network reads with text or reasoning.
        late: how late this process was shortly before the first of these reads.
        first: the time to the first of these reads.
        seconds: the time to its end.
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
        """Whether the answer came in pieces; None if that is uncertain.

        While this process does not run, several pieces arrive in one read.
        """
        if self.reads > 1:
            return True
        return None if self.late > _MAX_LATENESS else False

    @property
    def calls(self) -> list[ToolCall]:
        """The complete tool calls."""
        return [part for part in self.parts if isinstance(part, ToolCall)]

    @property
    def thinks(self) -> bool:
        """Whether the model showed or counted any reasoning."""
        is_shown = any(isinstance(part, ThinkingPart) for part in self.parts)
        return is_shown or bool(self.usage and self.usage.reasoning_tokens)

    @property
    def refusal(self) -> UpstreamRefused | None:
        """The first refusal of the request itself, which a retry would not help."""
        refusals = (e for e in self.refusals if isinstance(e, UpstreamRefused))
        return next((error for error in refusals if not error.retryable), None)


class Prober:
    """Asks one model questions, which may override the known facts about it."""

    def __init__(
        self, upstream: HttpUpstream, model: str, *, seconds: float = 120.0
    ) -> None:
        self._upstream = upstream
        self.model = model
        self._seconds = seconds
        self._refusals: list[UpstreamError] = []
        upstream.recoveries = (_FailureRecorder(self._refusals), *upstream.recoveries)

    @property
    def facts(self) -> SourcedFacts:
        """The facts about the model that are known so far."""
        return self._upstream.known.sourced_facts(self.model)

    @property
    def dialect(self) -> str:
        """The name of the dialect in which the model is asked."""
        return self.facts.facts.dialect or self._upstream.spec.api.dialect.name

    async def window(self) -> int:
        """Return the window in tokens that the server reports, 0 for none."""
        return await self._upstream.window(self.model)

    async def ask(self, chat: ChatRequest, **assumed: Any) -> ProbeAnswer:
        """Ask a question; `assumed` overrides facts for this question alone.

        Remedies that byok finds are forgotten: with them the next question might not
        send the feature that it tries.
        """
        saved = self._upstream.remedies.save()
        answer = await self.ask_first(chat, **assumed)
        self._upstream.remedies.restore(saved)
        return answer

    async def ask_first(self, chat: ChatRequest, **assumed: Any) -> ProbeAnswer:
        """Ask a question, and apply the remedies that byok finds to later ones."""
        answer = ProbeAnswer()
        collector = _PartCollector()
        record = begin_record(RequestRecord())
        self._refusals.clear()
        start = time.monotonic()
        self._upstream.known.assume(**assumed)
        watch = LatenessWatch(time.monotonic)
        watch_task = asyncio.ensure_future(watch.run())
        destination = Destination(self._upstream, self.model)
        try:
            async with asyncio.timeout(self._seconds):
                async for batch in ask(destination, chat):
                    if collector.add(batch):
                        if not answer.reads:
                            answer.first = time.monotonic() - start
                            answer.late = watch.lateness()
                        answer.reads += 1
        except TimeoutError:
            answer.error = UpstreamTimeout("it did not end its answer in time.")
        except ByokError as error:
            answer.error = error
        finally:
            watch_task.cancel()
            self._upstream.known.assume()
        answer.seconds = time.monotonic() - start
        answer.refusals = [*self._refusals]
        answer.requests = record.attempts
        answer.parts, answer.usage = collector.parts(), collector.usage
        return answer


class _FailureRecorder(Recovery):
    """Records all failures, also those that byok recovers from; it recovers nothing."""

    def __init__(self, failures: list[UpstreamError]) -> None:
        self._failures = failures

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        if isinstance(failure, UpstreamError):
            self._failures.append(failure)
        return failure


class LatenessWatch:
    """Measures how late this process runs because others use the processors."""

    def __init__(
        self,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._last = clock()
        # The time of each measurement, and the lateness.
        self._measures: deque[tuple[float, float]] = deque(maxlen=_MAX_MEASURES)

    async def run(self) -> None:
        """Measure until the task is cancelled."""
        while True:
            await self._sleep(_MEASURE_SECONDS)
            now = self._clock()
            self._measures.append((now, now - self._last - _MEASURE_SECONDS))
            self._last = now

    def lateness(self) -> float:
        """Return the longest lateness of the last second, in seconds."""
        now = self._clock()
        recent = [late for at, late in self._measures if now - at < 1.0]
        return max(0.0, now - self._last - _MEASURE_SECONDS, *recent)


class _PartCollector:
    """Joins the events of one answer to its parts."""

    def __init__(self) -> None:
        self._pieces: list[str | ThinkingDelta] = []
        self._calls: list[ToolCall] = []
        self.usage: Usage | None = None

    def add(self, batch: list[StreamEvent]) -> bool:
        """Add the events of a network read; tell whether they have text or thoughts."""
        count = len(self._pieces)
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
        return len(self._pieces) > count

    def parts(self) -> tuple[Part, ...]:
        return (*answer_parts(self._pieces, self._calls),)


class ProbeState(Struct):
    """The results that later cases need.

    `called` is the answer that called a tool, and `thinks`: some answer had reasoning.
    """

    called: tuple[Part, ...] = ()
    thinks: bool = False


class Finding(Struct, frozen=True):
    """The result of a case: outcome, remark, facts, and the answers that it got."""

    outcome: ProbeOutcome
    detail: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    answers: tuple[ProbeAnswer, ...] = ()


def failure(answer: ProbeAnswer, facts: dict[str, Any] | None = None) -> Finding:
    """Return the finding of a failed answer; `facts` are true if it was refused."""
    error = answer.refusal or answer.error
    assert error is not None  # noqa: S101 - the caller has checked it
    if answer.refusal:
        return Finding(ProbeOutcome.REFUSED, describe(error), facts or {}, (answer,))
    return Finding(ProbeOutcome.FAILED, describe(error), {}, (answer,))


def describe(error: ByokError) -> str:
    """Return the reason of an error in byok's words, with its code."""
    return f"{reason_of(error)} ({error.code})"
