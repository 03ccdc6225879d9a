"""Ask models a question until one answers, or until no recovery is left to try.

This is the only place where a failure of an upstream is caught, where the memory of a
request is released, and where it is decided that an answer has begun.

A request is retried only while the client has received nothing of its answer, or
nothing but thoughts. A later retry could make the client show a sentence twice, or run
a tool twice.

Recoveries are listed from the wire outwards. After a failure they are tried in this
order, and the first one that returns a plan is used. Before a request is sent they
prepare it in the opposite order: another model is chosen, the conversation is shortened
for it, and then it is encoded with the remedies that the model needs.
"""

import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from byok.core.chat import ChatRequest
from byok.core.errors import (
    ByokError,
    ContextLengthExceeded,
    RefusalKind,
    UpstreamEmpty,
    UpstreamRefused,
)
from byok.core.events import (
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    Usage,
    is_thinking,
)
from byok.upstream.base import Destination, Plan, Recovery, find_next_plan
from byok.upstream.own_tools import OwnTurn
from byok.upstream.reasons import restart_notice
from byok.upstream.toolcalls.assemble import ToolCallAssembler
from byok.upstream.turn import AnotherToolCall, ShownPart, TurnAnswer

_log = logging.getLogger(__name__)


def new_call_id() -> str:
    """Return a new id of a tool call."""
    return f"call_{uuid.uuid4().hex[:24]}"


async def ask(
    destination: Destination,
    request: ChatRequest,
    new_assembler: Callable[[ChatRequest], ToolCallAssembler] = (
        lambda request: ToolCallAssembler(request.tools, new_id=new_call_id)
    ),
    *,
    corrections: int = 0,
    own: OwnTurn | None = None,
) -> AsyncGenerator[list[StreamEvent], None]:
    """Yield the events of an answer; the events of one network read are one list.

    Tool calls are yielded complete, at the end. The model is asked at most
    `corrections` times to repeat broken calls. Calls of byok's own tools, which `own`
    adds to the request, are run here, and the model continues with their results.

    Raises:
        ByokError: no upstream gave a usable answer. The tokens of the failed attempts
            were yielded before.
    """
    request = own.request if own else request
    turn = TurnAnswer(new_assembler, own)
    question = _Question(destination, request, turn, corrections, own)
    del request, turn
    while not question.is_over:
        failure: ByokError | None = None
        try:
            async with aclosing(await question.send()) as batches:
                async for batch in batches:
                    if events := await question.accept(batch):
                        yield events
        except ByokError as error:
            failure = error
        if last_events := await question.finish_attempt(failure):
            yield last_events
    if question.failure is not None:
        raise question.failure


class _Question:
    """A question with its current plan.

    Nothing else may refer to the plan: it contains the messages, which can be many
    megabytes, and another reference would keep them in memory until the answer ends.

    Attributes:
        is_over: whether no further attempt follows.
        failure: why the question has no answer; None if it was answered.
    """

    def __init__(
        self,
        destination: Destination,
        request: ChatRequest,
        turn: TurnAnswer,
        corrections: int,
        own: OwnTurn | None,
    ) -> None:
        self._plan = Plan(destination, request)
        self._turn = turn
        self._own = own
        self._call_retry = AnotherToolCall(turn, corrections)
        # The recoveries that do not depend on the upstream.
        self._outer = (*destination.recoveries, self._call_retry)
        self._recoveries: Sequence[Recovery] = self._outer
        self.is_over = False
        self.failure: ByokError | None = None

    async def send(self) -> AsyncGenerator[list[StreamEvent], None]:
        """Prepare the plan, the outermost recovery first, and send it."""
        self._recoveries = self._outer
        self._turn.start(self._plan.request)
        for recovery in reversed(self._outer):
            self._plan = await recovery.prepare(self._plan)
        upstream = self._plan.destination.upstream
        self._recoveries = (*upstream.recoveries, *self._outer)
        for recovery in reversed(upstream.recoveries):
            self._plan = await recovery.prepare(self._plan)
        return upstream.send(self._plan)

    async def accept(self, batch: list[StreamEvent]) -> list[StreamEvent]:
        """Process the events of a network read; return those for the client.

        Raises:
            UpstreamError: the events end the stream without an acceptable answer.
        """
        turn = self._turn
        if turn.shown is not ShownPart.ANSWER and not turn.continues_thought(batch):
            batch = self._buffer_beginning(batch)
        if batch and isinstance(batch[-1], Finish):
            notices = list[Notice]()
            for recovery in self._recoveries:
                notices += await recovery.on_answer_end(self._plan, batch)
            batch = [*batch[:-1], *notices, batch[-1]]
        return turn.show(batch)

    def _buffer_beginning(self, batch: list[StreamEvent]) -> list[StreamEvent]:
        """Buffer events; once they may be shown, return them after their notices."""
        shown = self._turn.buffer(batch)
        if shown is ShownPart.NOTHING:
            return []
        notices: list[Notice] = []
        if shown is ShownPart.ANSWER:
            notices += _check_content(self._plan, self._turn.buffered)
            for recovery in self._recoveries:
                recovery.on_answer_start(self._plan)
        for recovery in self._recoveries:
            notices = [*recovery.notices(self._plan), *notices]
        if shown is ShownPart.ANSWER:  # free the messages unless they are sent again
            is_needed = self._own is not None or self._call_retry.is_possible(
                self._plan
            )
            if not is_needed:
                self._turn.stop_storing_text()
            self._plan = self._plan.release(keeps_request=is_needed)
        if self._plan.has_void_thoughts:
            self._plan = self._plan.having(has_void_thoughts=False)
        return self._turn.begin(shown, notices)

    async def finish_attempt(self, failure: ByokError | None) -> list[StreamEvent]:
        """End an attempt, and plan another one if it failed; return the last events.

        The result may be that of an earlier attempt, whose broken calls the model was
        asked for again in vain.
        """
        turn = self._turn
        if (failure := failure or turn.broken_calls) is None:
            if self._own is None or turn.own_calls is None:
                self.is_over = True
                return turn.end()
            # Run byok's own calls; the model continues, unless the client has calls.
            request, notices = await self._own.run_calls(
                self._plan.request, turn.own_calls
            )
            if request is None:
                self.is_over = True
                return [*notices, *turn.end_with_calls()]
            self._plan = Plan(self._plan.destination, request, self._plan.corrections)
            return [*notices, *turn.call_places()]
        outcome = await self._plan_retry(failure)
        if isinstance(outcome, Plan):
            turn.abandon()
            self._plan = outcome.having(urgent=())
            return [*outcome.urgent]
        self.is_over = True
        if turn.has_valid_earlier_answer:
            _log.warning("an earlier answer stands: %s", outcome.log_text)
        else:
            self.failure = outcome
        return turn.end_failed()

    async def _plan_retry(self, failure: ByokError) -> Plan | ByokError:
        """Return the plan of the next attempt, or else the failure for the user.

        Once a part of the answer was shown, only lost or broken calls are retried.
        """
        shown, plan = self._turn.shown, self._plan
        is_open = shown is not ShownPart.ANSWER
        recoveries = self._recoveries if is_open else (self._call_retry,)
        outcome = await find_next_plan(recoveries, plan, failure)
        if not isinstance(outcome, Plan) or shown is not ShownPart.THINKING:
            return outcome
        if outcome.destination is not plan.destination:
            return outcome.having(has_void_thoughts=True)
        notice = restart_notice(plan.name, failure)
        return outcome.having(urgent=(notice, *outcome.urgent))


def _check_content(plan: Plan, events: Sequence[StreamEvent]) -> list[Notice]:
    """Check an answer that may have ended without text or calls.

    Returns a notice for the user if the model refused to answer.

    Raises:
        UpstreamEmpty: the answer is empty, and must not be.
        ContextLengthExceeded: it is empty because the context window is full.
        UpstreamRefused: the model refused to answer, and others can be asked.
    """
    end = events[-1]
    if not isinstance(end, Finish) or not is_thinking(events[:-1]):
        return []
    if end.fills_window:
        raise _window_is_full(plan)
    match end.reason, [e for e in events[:-1] if not isinstance(e, Notice)]:
        case FinishReason.LENGTH, [Usage(input_tokens=tokens, output_tokens=0)] if (
            plan.weight
        ):
            raise _window_is_full(plan, tokens or None)
        case FinishReason.STOP, _ if (
            (patience := plan.patience) is not None
            and patience.seconds
            and not patience.retries
            and plan.codec is None
            and plan.outgoing.is_question
        ):  # else an empty answer is passed on
            raise UpstreamEmpty(
                "its answer was empty.", retryable=True, upstream=plan.name
            )
        case FinishReason.CONTENT_FILTER, _:
            refusal = UpstreamRefused(
                "it refused to answer.",
                kind=RefusalKind.CONTENT_FILTER,
                hint="Say it differently, or choose another model.",
                upstream=plan.name,
            )
            if plan.has_others:
                raise refusal
            return [Notice(refusal.sentence)]
        case _:
            return []


def _window_is_full(plan: Plan, tokens: int | None = None) -> ContextLengthExceeded:
    return ContextLengthExceeded(
        "the conversation leaves it no room for an answer.",
        window=tokens,
        counted=tokens,
        upstream=plan.name,
    )
