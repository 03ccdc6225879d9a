"""Ask a question until it is answered, or nothing is left to try.

This is the only place where a failure of an upstream is caught, where the memory of a
request is released, and where it is decided that an answer has begun.

A request is made again only while the client was shown nothing of its answer, or
nothing but thoughts. From then on it would read a sentence twice, or run a tool twice.

Recoveries are listed from the wire outwards. After a failure they are asked in this
order, and the first one that helps is tried. Before a request is sent they prepare it
in the opposite order: another model is chosen, the conversation is shortened for it,
then it is written with the remedies that the model needs.
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
from byok.upstream.base import Destination, Plan, Recovery, plan_again
from byok.upstream.own_tools import OwnCalls, OwnTurn
from byok.upstream.reasons import restart_notice
from byok.upstream.toolcalls.assemble import ToolCallAssembler
from byok.upstream.turn import AnotherToolCall, ShownPart, TurnAnswer

_log = logging.getLogger(__name__)


def new_call_id() -> str:
    """Return a new id of a tool call."""
    return f"call_{uuid.uuid4().hex[:24]}"


def _assemble_as_they_are(request: ChatRequest) -> ToolCallAssembler:
    return ToolCallAssembler(request.tools, new_id=new_call_id)


async def ask(
    destination: Destination,
    request: ChatRequest,
    assembling: Callable[[ChatRequest], ToolCallAssembler] = _assemble_as_they_are,
    *,
    corrections: int = 0,
    own: OwnTurn | None = None,
) -> AsyncGenerator[list[StreamEvent], None]:
    """Yield the events of an answer, those of one network read as one list.

    Tool calls are whole, and come at the end. A broken one is asked for again at most
    `corrections` times. Those of byok's own tools, which `own` adds to the request, are
    run, and the model goes on.

    Raises:
        ByokError: no upstream gave a usable answer. What it cost was yielded before.
    """
    request = own.request if own else request
    turn = TurnAnswer(assembling, own)
    question = _Question(destination, request, turn, corrections, own)
    del request, turn
    while not question.is_over:
        failure: ByokError | None = None
        try:
            async with aclosing(await question.send()) as batches:
                async for batch in batches:
                    if out := await question.take(batch):
                        yield out
        except ByokError as error:
            failure = error
        if rest := await question.conclude(failure):
            yield rest
    if question.failure is not None:
        raise question.failure


class _Question:
    """A question with its present plan.

    Nothing else holds the plan: it has the messages, which can be many megabytes, and
    every other name for it would keep them until the answer ends.

    Attributes:
        is_over: there is no further attempt.
        failure: why there is no answer then.
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
        self._calling = AnotherToolCall(turn, corrections)
        self._outer = (*destination.recoveries, self._calling)
        self._recoveries: Sequence[Recovery] = self._outer
        self.is_over = False
        self.failure: ByokError | None = None

    async def send(self) -> AsyncGenerator[list[StreamEvent], None]:
        """Prepare the plan from the outside in, and send it."""
        self._recoveries = self._outer
        self._turn.start(self._plan.request)
        for recovery in reversed(self._outer):
            self._plan = await recovery.prepare(self._plan)
        upstream = self._plan.destination.upstream
        self._recoveries = (*upstream.recoveries, *self._outer)
        for recovery in reversed(upstream.recoveries):
            self._plan = await recovery.prepare(self._plan)
        return upstream.send(self._plan)

    async def take(self, batch: list[StreamEvent]) -> list[StreamEvent]:
        """Take the events of a network read; return what is passed on.

        Raises:
            UpstreamError: they are no answer.
        """
        turn = self._turn
        if turn.shown is not ShownPart.ANSWER and not turn.continues_thought(batch):
            batch = self._begin(batch)
        if batch and isinstance(batch[-1], Finish):
            told = list[Notice]()
            for recovery in self._recoveries:
                told += await recovery.note_end(self._plan, batch)
            batch = [*batch[:-1], *told, batch[-1]]
        return turn.show(batch)

    def _begin(self, batch: list[StreamEvent]) -> list[StreamEvent]:
        """Return the first events of an answer, after what the user is told with it."""
        shown = self._turn.hold(batch)
        if shown is ShownPart.NOTHING:
            return []
        told: list[Notice] = []
        if shown is ShownPart.ANSWER:
            told += _check_words(self._plan, self._turn.held)
            for recovery in self._recoveries:
                recovery.note_begin(self._plan)
        for recovery in self._recoveries:
            told = [*recovery.notices(self._plan), *told]
        if shown is ShownPart.ANSWER:
            self._release()
        if self._plan.has_void_thoughts:
            self._plan = self._plan.having(has_void_thoughts=False)
        return self._turn.begin(shown, told)

    async def conclude(self, failure: ByokError | None) -> list[StreamEvent]:
        """End an attempt, and plan another one if it failed; return what is passed on.

        What counts then may also be an earlier answer, whose calls were not made again.
        """
        turn = self._turn
        if (failure := failure or turn.broken_calls) is None:
            if self._own is not None and turn.own_calls is not None:
                return await self._answer(self._own, turn.own_calls)
            self.is_over = True
            return turn.end()
        outcome = await self._plan_again(failure)
        if isinstance(outcome, Plan):
            turn.abandon()
            self._plan = outcome.having(urgent=())
            return [*outcome.urgent]
        self.is_over = True
        if turn.stands:
            _log.warning("an earlier answer stands: %s", outcome.log_text)
        else:
            self.failure = outcome
        return turn.give_up()

    async def _answer(self, own: OwnTurn, made: OwnCalls) -> list[StreamEvent]:
        """Run byok's own calls, and let the model go on, or else the client."""
        request, notices = await own.answer(self._plan.request, made)
        if request is None:
            self.is_over = True
            return [*notices, *self._turn.end_own()]
        self._plan = self._plan.go_on(request)
        return [*notices, *self._turn.pause()]

    async def _plan_again(self, failure: ByokError) -> Plan | ByokError:
        """Return what is tried after a failure, else the failure for the user.

        After a part of the answer it is told as it came.
        """
        shown, plan = self._turn.shown, self._plan
        is_open = shown is not ShownPart.ANSWER
        able = self._recoveries if is_open else (self._calling,)
        outcome = await plan_again(able, plan, failure)
        if not isinstance(outcome, Plan) or shown is not ShownPart.THINKING:
            return outcome
        if outcome.destination is not plan.destination:
            return outcome.having(has_void_thoughts=True)
        notice = restart_notice(plan.name, failure)
        return outcome.having(urgent=(notice, *outcome.urgent))

    def _release(self) -> None:
        """Let go of the messages, as soon as no recovery could send them again."""
        is_needed = self._own is not None or self._calling.may_ask(self._plan)
        if not is_needed:
            self._turn.keep_no_text()
        self._plan = self._plan.release(keeps_request=is_needed)


def _check_words(plan: Plan, events: Sequence[StreamEvent]) -> list[Notice]:
    """Check whether an answer that begins may have no word; say why, if it refuses.

    Raises:
        UpstreamEmpty: the answer ends without a word, and may not.
        ContextLengthExceeded: it does because the context window is full.
        UpstreamRefused: the model refuses to answer, and others can be asked.
    """
    end = events[-1]
    if not isinstance(end, Finish) or not is_thinking(events[:-1]):
        return []
    if end.fills_window:
        raise _no_room(plan)
    match end.reason, [e for e in events[:-1] if not isinstance(e, Notice)]:
        case FinishReason.LENGTH, [Usage(input_tokens=read, output_tokens=0)] if (
            plan.weight
        ):
            raise _no_room(plan, read or None)
        case FinishReason.STOP, _ if not _may_be_empty(plan):
            raise UpstreamEmpty(
                "its answer was empty.", retryable=True, upstream=plan.name
            )
        case FinishReason.CONTENT_FILTER, _:
            refused = UpstreamRefused(
                "it refused to answer.",
                kind=RefusalKind.CONTENT_FILTER,
                hint="Say it differently, or choose another model.",
                upstream=plan.name,
            )
            if plan.has_others:
                raise refused
            return [Notice(refused.sentence)]
        case _:
            return []


def _no_room(plan: Plan, read: int | None = None) -> ContextLengthExceeded:
    return ContextLengthExceeded(
        "the conversation leaves it no room for an answer.",
        window=read,
        counted=read,
        upstream=plan.name,
    )


def _may_be_empty(plan: Plan) -> bool:
    """Tell whether an answer without a word is passed on, and not asked for again."""
    if plan.patience is None or not plan.patience.seconds or plan.patience.retries:
        return True
    return plan.codec is not None or not plan.outgoing.is_question
