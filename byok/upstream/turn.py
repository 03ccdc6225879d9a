"""The answer of one turn as the client sees it, however many attempts it takes."""

import logging
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum

from msgspec.structs import replace

from byok.core.chat import ChatRequest, Part, ToolCall
from byok.core.errors import ByokError, UpstreamError
from byok.core.events import (
    Citation,
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallPlace,
    Usage,
    begins_answer,
    is_thinking,
)
from byok.core.record import current_record
from byok.upstream.base import Plan, Recovery
from byok.upstream.own_tools import OwnCalls, OwnTurn
from byok.upstream.reasons import restart_notice
from byok.upstream.toolcalls.assemble import (
    BrokenCall,
    RepetitionFilter,
    ToolCallAssembler,
    answer_parts,
    correction_request,
)

_log = logging.getLogger(__name__)
_WHOLE_REASONS = (FinishReason.STOP, FinishReason.TOOL_CALLS)


class ShownPart(IntEnum):
    """What the client received of an answer; a call counts from its first fragment."""

    NOTHING = 0
    THINKING = 1
    ANSWER = 2


class BrokenCalls(ByokError):
    """An answer was complete, but all of its tool calls are unusable.

    `parts` are the text and thoughts of the answer. No client sees this error: if the
    model does not repeat its calls, the answer ends without them.
    """

    code = "upstream_bad_call"

    def __init__(self, parts: Sequence[Part], calls: Sequence[BrokenCall]) -> None:
        super().__init__("a tool call is not valid JSON.")
        self.parts = parts
        self.calls = calls


class TurnAnswer:
    """Buffers an answer until it begins, and its tool calls and usage until its end.

    Several attempts may follow each other. The client receives the text of each that
    continues the earlier ones, and the usage of all attempts once.

    Attributes:
        shown: what the client received of the current attempt.
        buffered: the events of this attempt that the client did not receive yet.
        broken_calls: the calls of a complete answer, if all of them are unusable.
        own_calls: a complete answer with calls that byok runs, or that are stored with
            byok's earlier calls.
    """

    def __init__(
        self,
        new_assembler: Callable[[ChatRequest], ToolCallAssembler],
        own: OwnTurn | None,
    ) -> None:
        self._new_assembler = new_assembler
        self._own = own
        self._texts: list[str] = []  # that the client received, of all attempts
        self._stores_text = True  # another attempt may need it
        self._notices: set[str] = set()
        self._usage: Usage | None = None
        self._end: list[StreamEvent] = []  # of the last answer with broken calls
        self.shown = ShownPart.NOTHING

    def start(self, request: ChatRequest) -> None:
        """Begin the first or another attempt."""
        self.shown = ShownPart.NOTHING
        self.broken_calls: BrokenCalls | None = None
        self.own_calls: OwnCalls | None = None
        self._end_events: list[StreamEvent] = []  # where byok's own tools are offered
        self._block_ends: list[ThinkingDelta] = []  # that the client does not have yet
        self._must_be_whole = request.whole
        self.buffered: list[StreamEvent] = []
        self._ends_thought = False  # a buffered event ends a block of thoughts
        self._has_notices = False  # the notices of this attempt were returned
        self._assembler = self._new_assembler(request)
        self._repetition = RepetitionFilter("".join(self._texts))
        # The pieces of this attempt in their order, for the model; text as strings.
        self._pieces: list[str | ThinkingDelta | ToolCallPlace] = []
        self._first_text = len(self._texts)

    def stop_storing_text(self) -> None:
        """Store no text from now on: no other attempt will continue it.

        If an earlier answer had broken calls, the text still decides whether that
        answer is the valid one.
        """
        self._stores_text = bool(self._end)

    def continues_thought(self, batch: Sequence[StreamEvent]) -> bool:
        """Tell whether a network read only continues thoughts that are shown."""
        if self.shown is ShownPart.NOTHING or len(batch) > 1 or self.buffered:
            return False
        event = batch[0]
        return type(event) is ThinkingDelta and event.provider_data is None

    def buffer(self, batch: Sequence[StreamEvent]) -> ShownPart:
        """Buffer the events of a network read; return what all buffered events show.

        NOTHING means that they must stay in the buffer. The end of a block of thoughts
        must not pass before an answer: the client would send it back. An answer that
        must be complete passes only as a whole.
        """
        self.buffered += batch
        if not begins_answer(batch):
            return ShownPart.NOTHING
        if self._must_be_whole:
            current_record().note_first_byte()
            is_over = isinstance(batch[-1], Finish)
            return ShownPart.ANSWER if is_over else ShownPart.NOTHING
        if not is_thinking(batch):
            return ShownPart.ANSWER
        self._ends_thought = self._ends_thought or any(map(_ends_block, batch))
        return ShownPart.NOTHING if self._ends_thought else ShownPart.THINKING

    def begin(self, shown: ShownPart, notices: Iterable[Notice]) -> list[StreamEvent]:
        """Return the buffered events, after the notices that the client lacks."""
        self.shown = shown
        buffered, self.buffered = self.buffered, []
        if self._has_notices:
            return buffered
        self._has_notices = True
        new = [n for n in notices if n.is_restart or n.text not in self._notices]
        self._notices.update(notice.text for notice in new)
        return [*new, *buffered]

    def show(self, batch: Iterable[StreamEvent]) -> list[StreamEvent]:
        """Return the events for the client; a Finish brings all calls of the answer.

        An end with broken calls is not returned: the model may repeat them.
        """
        events: list[StreamEvent] = []
        for event in batch:
            match event:
                case TextDelta(text=text):
                    events += self._show_text(event, text)
                case Usage():
                    self._usage = event.plus(self._usage)
                case Finish():
                    events += self._close(event)
                case _:
                    passed = self._assembler.feed(event)
                    if isinstance(event, ThinkingDelta):
                        passed = self._show_thought(event, passed)
                    events += passed
        return events

    def end(self) -> list[StreamEvent]:
        """Return the events that remain after an attempt that did not fail."""
        return [*self._assembler.flush(), *self._pop_usage()]

    def abandon(self) -> None:
        """Discard the buffer of an attempt that failed, but count its tokens."""
        for event in self.buffered:
            if isinstance(event, Usage):
                self._usage = event.plus(self._usage)
        self.buffered = []

    def end_failed(self) -> list[StreamEvent]:
        """Return the last events for the client after the last attempt failed."""
        is_useless = self._must_be_whole or Finish in map(type, self.buffered)
        useful = () if is_useless else self.buffered
        remaining = [event for event in useful if not isinstance(event, Usage)]
        self.abandon()
        end = self._end if self.has_valid_earlier_answer else ()
        return [*remaining, *self._pop_usage(), *end]

    @property
    def has_valid_earlier_answer(self) -> bool:
        """Whether an earlier answer counts, whose broken calls were not repeated."""
        has_thoughts = any(isinstance(piece, ThinkingDelta) for piece in self._pieces)
        is_visible = len(self._texts) > self._first_text or has_thoughts
        return bool(self._end) and (self.broken_calls is not None or not is_visible)

    @property
    def has_signed_thoughts(self) -> bool:
        """Whether the client has thoughts that it sends back: they cannot be void."""
        thoughts = (p for p in self._pieces if isinstance(p, ThinkingDelta))
        return any(map(_ends_block, thoughts))

    @property
    def has_hidden_call(self) -> bool:
        """Whether a tool call has begun of which the client received nothing."""
        return self._assembler.has_hidden_call

    def _show_thought(
        self, event: ThinkingDelta, passed: Iterable[StreamEvent]
    ) -> list[StreamEvent]:
        """Return the events for the client of a thought.

        The end of a block of thoughts is delayed if a call of byok's own tools may
        follow: the client does not get such a call, and would send the block back
        without it.
        """
        *places, _ = passed
        self._pieces += [p for p in places if isinstance(p, ToolCallPlace)]
        self._pieces.append(event)
        ends, self._block_ends = self._block_ends, []
        if self._own is None or event.provider_data is None:
            return [*ends, *places, event]
        self._block_ends = [ThinkingDelta("", event.provider_data)]
        return [*ends, *places, *([ThinkingDelta(event.text)] if event.text else [])]

    def _show_text(self, event: TextDelta, text: str) -> list[StreamEvent]:
        if self._stores_text:
            self._pieces.append(text)
        new = self._repetition.feed(text)
        if not new:
            return []
        if self._stores_text:
            self._texts.append(new)
        shown = event if new is text else TextDelta(new)
        if not (self._assembler.unplaced or self._block_ends):
            return [shown]
        ends, self._block_ends = self._block_ends, []
        places = self._assembler.place_calls(shown)
        self._pieces[-1:] = [*places, text]
        return [*ends, *places, shown]

    def _close(self, finish: Finish) -> list[StreamEvent]:
        """Return the calls and the end, unless all of the calls are broken."""
        end: list[StreamEvent] = [*self._assembler.feed(finish)]
        is_whole, broken = finish.reason in _WHOLE_REASONS, self._assembler.broken
        if is_whole and broken and not self._assembler.others:
            self.broken_calls = BrokenCalls(answer_parts(self._pieces), broken)
            self._end = end
            return []
        earlier_end, self._end = self._end, []
        text = "".join(self._texts[self._first_text :])
        if earlier_end and end == [finish] and is_whole and not text.strip():
            end = earlier_end  # the user must hear of the call that was dropped
        if self._own is not None:
            self._end_events = self._sort_calls(self._own, end, is_whole=is_whole)
            return [] if self.own_calls else self.end_with_calls()
        return [*self._pop_usage(), *end]

    def _sort_calls(
        self, own: OwnTurn, end: Sequence[StreamEvent], *, is_whole: bool
    ) -> list[StreamEvent]:
        """Return the end of an answer with byok's own calls replaced by their places.

        The client already has the places of some of them.
        """
        calls = [event for event in end if isinstance(event, ToolCall)]
        own_calls = tuple(call for call in calls if call.name in own.names)
        client_calls = tuple(call for call in calls if call.name not in own.names)
        if is_whole and (own_calls or (client_calls and own.has_run)):
            parts = answer_parts(self._pieces, calls)
            self.own_calls = OwnCalls((*parts,), own_calls, client_calls)
        events: list[StreamEvent] = []
        for event in end:
            if event not in own_calls:
                events.append(event)
            elif (place := ToolCallPlace(event.id)) not in self._pieces:
                events.append(place)
        return events

    def call_places(self) -> list[StreamEvent]:
        """Return the places of byok's own calls, after which the model continues."""
        return [event for event in self._end_events if isinstance(event, ToolCallPlace)]

    def end_with_calls(self) -> list[StreamEvent]:
        """Return the last events of an answer that could call byok's own tools."""
        ends, self._block_ends = self._block_ends, []
        return [*ends, *self._citations(), *self._pop_usage(), *self._end_events]

    def _citations(self) -> list[Citation]:
        """Return the sources that were read or named, or else all that were shown."""
        sources, text = self._own.sources if self._own else [], "".join(self._texts)
        cited = [source for source, is_read in sources if is_read or source.url in text]
        return cited or [source for source, _ in sources]

    def _pop_usage(self) -> list[StreamEvent]:
        usage, self._usage = self._usage, None
        return [usage] if usage else []


class AnotherToolCall(Recovery):
    """Asks for tool calls again that are not JSON or were lost, at most `times`.

    An agent stops if a tool call is dropped. So the model is asked again: it sees its
    answer and the error, and its second answer continues the first one. If the
    connection was lost inside a call, the same question is asked again, provided that
    the client has seen nothing of the call: calls are passed on at the end of an
    answer. A call that the output limit cut off is not retried: it would be cut off
    again. Nor is an answer that also had a valid call: the agent continues with that
    one's result, and a second answer might repeat the call.
    """

    def __init__(self, turn: TurnAnswer, times: int) -> None:
        self._turn = turn
        self._times = times

    def is_possible(self, plan: Plan) -> bool:
        """Tell whether the model may be asked for its calls again."""
        return bool(plan.request.tools) and plan.corrections < self._times

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        """Return a plan that asks for the broken or lost calls again."""
        if not self.is_possible(plan):
            return failure
        if isinstance(failure, BrokenCalls):
            request = correction_request(plan.request, failure.parts, failure.calls)
            if request is None:
                return failure
            _log.info("asking %s again: a tool call is not valid JSON", plan.name)
            return plan.correct(request)
        is_lost = isinstance(failure, UpstreamError) and failure.retryable
        if not (is_lost and self._turn.has_hidden_call):
            return failure
        _log.info("asking %s again: a tool call was lost", plan.name)
        notice = restart_notice(plan.name, failure, "calling a tool")
        is_void = not self._turn.has_signed_thoughts
        return plan.correct(plan.request, replace(notice, is_restart=is_void))


def _ends_block(event: StreamEvent) -> bool:
    return isinstance(event, ThinkingDelta) and event.provider_data is not None
