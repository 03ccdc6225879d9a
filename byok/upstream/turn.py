"""The answer of one turn as the client sees it, whatever it took to get it."""

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
    ToolCallAssembler,
    Unsaid,
    answer_parts,
    correction_request,
)

_log = logging.getLogger(__name__)
_WHOLE = (FinishReason.STOP, FinishReason.TOOL_CALLS)


class ShownPart(IntEnum):
    """What the client was given of an answer; a call counts from its first fragment."""

    NOTHING = 0
    THINKING = 1
    ANSWER = 2


class BrokenCalls(ByokError):
    """An answer ended whole, but all of its tool calls are unusable.

    No client sees this error: if nothing helps, the answer ends as it is.
    """

    code = "upstream_bad_call"

    def __init__(self, said: Sequence[Part], calls: Sequence[BrokenCall]) -> None:
        super().__init__("a tool call is not valid JSON.")
        self.said = said
        self.calls = calls


class TurnAnswer:
    """Holds an answer back until it begins, its tool calls and its usage until its end.

    Several attempts may follow each other. Of each the text is passed on that continues
    those before, and the usage of all is told once.

    Attributes:
        shown: what of the present attempt the client was given.
        held: the events of this attempt that it was not given yet.
        broken_calls: the calls of a whole answer, if all of them are unusable.
        own_calls: a whole answer whose calls byok runs, or keeps with those before it.
    """

    def __init__(
        self,
        assembling: Callable[[ChatRequest], ToolCallAssembler],
        own: OwnTurn | None,
    ) -> None:
        self._assembling = assembling
        self._own = own
        self._texts: list[str] = []  # that the client was given, of all attempts
        self._keeps_text = True  # for another attempt
        self._notices: set[str] = set()
        self._spent: Usage | None = None
        self._end: list[StreamEvent] = []  # of the last answer, with broken calls
        self.shown = ShownPart.NOTHING

    def start(self, request: ChatRequest) -> None:
        """Begin with the first, or with another attempt."""
        self.shown = ShownPart.NOTHING
        self.broken_calls: BrokenCalls | None = None
        self.own_calls: OwnCalls | None = None
        self._end_own: list[StreamEvent] = []  # of an answer that may have such calls
        self._block_ends: list[ThinkingDelta] = []  # that the client does not have yet
        self._is_whole = request.whole
        self.held: list[StreamEvent] = []
        self._ends_thought = False  # what is held back ends a block of thoughts
        self._is_introduced = False  # by the notices of this attempt
        self._assembler = self._assembling(request)
        self._unsaid = Unsaid("".join(self._texts))
        self._said: list[str | ThinkingDelta | ToolCallPlace] = []
        self._first_text = len(self._texts)

    def keep_no_text(self) -> None:
        """Keep no text from now on: no attempt follows what the client was given.

        What an earlier attempt left may depend on whether this one says anything.
        """
        self._keeps_text = bool(self._end)

    def continues_thought(self, batch: Sequence[StreamEvent]) -> bool:
        """Tell whether a network read only continues thoughts that are shown."""
        if self.shown is ShownPart.NOTHING or len(batch) > 1 or self.held:
            return False
        event = batch[0]
        return type(event) is ThinkingDelta and event.provider_data is None

    def hold(self, batch: Sequence[StreamEvent]) -> ShownPart:
        """Hold the events of a network read back; return as what all may pass by now.

        What ends a block of thoughts may not pass before an answer: the client would
        send it back. Of an answer that must be whole nothing passes before its end.
        """
        self.held += batch
        if not begins_answer(batch):
            return ShownPart.NOTHING
        if self._is_whole:
            current_record().note_first_byte()
            is_over = isinstance(batch[-1], Finish)
            return ShownPart.ANSWER if is_over else ShownPart.NOTHING
        if not is_thinking(batch):
            return ShownPart.ANSWER
        self._ends_thought = self._ends_thought or any(map(_ends_block, batch))
        return ShownPart.NOTHING if self._ends_thought else ShownPart.THINKING

    def begin(self, shown: ShownPart, notices: Iterable[Notice]) -> list[StreamEvent]:
        """Return what was held back, after the notices that the client has not yet."""
        self.shown = shown
        held, self.held = self.held, []
        if self._is_introduced:
            return held
        self._is_introduced = True
        new = [n for n in notices if n.is_restart or n.text not in self._notices]
        self._notices.update(notice.text for notice in new)
        return [*new, *held]

    def show(self, batch: Iterable[StreamEvent]) -> list[StreamEvent]:
        """Return what is passed on of an answer; at its end that is all of its calls.

        An end with broken calls is not passed on: they may be made again.
        """
        out: list[StreamEvent] = []
        for event in batch:
            match event:
                case TextDelta(text=text):
                    out += self._show_text(event, text)
                case Usage():
                    self._spent = event.plus(self._spent)
                case Finish():
                    out += self._close(event)
                case _:
                    passed = self._assembler.feed(event)
                    if isinstance(event, ThinkingDelta):
                        passed = self._think(event, passed)
                    out += passed
        return out

    def end(self) -> list[StreamEvent]:
        """Return the last events of an answer that came without an end of its own."""
        return [*self._assembler.flush(), *self._take_usage()]

    def abandon(self) -> None:
        """Forget what is held back of an attempt that failed; its tokens count."""
        for event in self.held:
            if isinstance(event, Usage):
                self._spent = event.plus(self._spent)
        self.held = []

    def give_up(self) -> list[StreamEvent]:
        """Return what is passed on at last, of an attempt that failed."""
        is_useless = self._is_whole or any(isinstance(e, Finish) for e in self.held)
        kept = () if is_useless else self.held
        rest = [event for event in kept if not isinstance(event, Usage)]
        self.abandon()
        return [*rest, *self._take_usage(), *(self._end if self.stands else ())]

    @property
    def stands(self) -> bool:
        """Whether an answer counts although its broken calls were not made again."""
        has_thoughts = any(isinstance(said, ThinkingDelta) for said in self._said)
        is_visible = len(self._texts) > self._first_text or has_thoughts
        return bool(self._end) and (self.broken_calls is not None or not is_visible)

    @property
    def has_signed_thoughts(self) -> bool:
        """Whether the client has thoughts that it sends back: they cannot be void."""
        thoughts = (said for said in self._said if isinstance(said, ThinkingDelta))
        return any(map(_ends_block, thoughts))

    @property
    def has_hidden_call(self) -> bool:
        """Whether a tool call has begun, and the client was given nothing of it."""
        return self._assembler.has_hidden_call

    def _think(
        self, event: ThinkingDelta, passed: Iterable[StreamEvent]
    ) -> list[StreamEvent]:
        """Return what is passed on of a thought.

        Before a call of byok's own tools, which the client does not have, nor must it
        have what ends a block: it would send that back without the call.
        """
        *places, _ = passed
        self._said += [p for p in places if isinstance(p, ToolCallPlace)]
        self._said.append(event)
        ends, self._block_ends = self._block_ends, []
        if self._own is None or event.provider_data is None:
            return [*ends, *places, event]
        self._block_ends = [ThinkingDelta("", event.provider_data)]
        return [*ends, *places, *([ThinkingDelta(event.text)] if event.text else [])]

    def _show_text(self, event: TextDelta, text: str) -> list[StreamEvent]:
        if self._keeps_text:
            self._said.append(text)
        new = self._unsaid.feed(text)
        if not new:
            return []
        if self._keeps_text:
            self._texts.append(new)
        shown = event if new is text else TextDelta(new)
        if not (self._assembler.unplaced or self._block_ends):
            return [shown]
        ends, self._block_ends = self._block_ends, []
        places = self._assembler.place_calls(shown)
        self._said[-1:] = [*places, text]
        return [*ends, *places, shown]

    def _close(self, finish: Finish) -> list[StreamEvent]:
        """Return the calls and the end, unless all of the calls are broken."""
        end: list[StreamEvent] = [*self._assembler.feed(finish)]
        is_whole, broken = finish.reason in _WHOLE, self._assembler.broken
        if is_whole and broken and not self._assembler.others:
            self.broken_calls = BrokenCalls(answer_parts(self._said), broken)
            self._end = end
            return []
        before, self._end = self._end, []
        said = "".join(self._texts[self._first_text :])
        if before and end == [finish] and is_whole and not said.strip():
            end = before  # the user must hear of the call that was dropped
        if self._own is not None:
            self._end_own = self._sort_calls(self._own, end, is_whole=is_whole)
            return [] if self.own_calls else self.end_own()
        return [*self._take_usage(), *end]

    def _sort_calls(
        self, own: OwnTurn, end: Sequence[StreamEvent], *, is_whole: bool
    ) -> list[StreamEvent]:
        """Return the end without byok's calls, of which the client knows the place."""
        calls = [event for event in end if isinstance(event, ToolCall)]
        mine = tuple(call for call in calls if call.name in own.names)
        theirs = tuple(call for call in calls if call.name not in own.names)
        if is_whole and (mine or (theirs and own.has_run)):
            parts = answer_parts(self._said, calls)
            self.own_calls = OwnCalls((*parts,), mine, theirs)
        out: list[StreamEvent] = []
        for event in end:
            if event not in mine:
                out.append(event)
            elif (place := ToolCallPlace(event.id)) not in self._said:
                out.append(place)
        return out

    def pause(self) -> list[StreamEvent]:
        """Return what the client gets when the model goes on after byok's own calls."""
        return [event for event in self._end_own if isinstance(event, ToolCallPlace)]

    def end_own(self) -> list[StreamEvent]:
        """Return the last events of an answer that could call byok's own tools."""
        ends, self._block_ends = self._block_ends, []
        return [*ends, *self._cite(), *self._take_usage(), *self._end_own]

    def _cite(self) -> list[Citation]:
        """Return the sources that were read or named, or else all that were shown."""
        found, said = self._own.sources if self._own else [], "".join(self._texts)
        named = [source for source, is_read in found if is_read or source.url in said]
        return named or [source for source, _ in found]

    def _take_usage(self) -> list[StreamEvent]:
        spent, self._spent = self._spent, None
        return [spent] if spent else []


class AnotherToolCall(Recovery):
    """Asks for tool calls again that are not JSON or were lost, at most `times`.

    An agent stops if a tool call is dropped. So the model is asked again: it sees its
    answer and the error, and its second answer continues the first one. Where the
    connection was lost inside a call, the same question is asked again if the client
    has seen nothing of the call: calls are handed on at the end of an answer. A call
    that the output limit cut off is not retried: it would be cut off again. Nor is an
    answer that also had a valid call: the agent continues with that one's result, and a
    second answer might repeat the call.
    """

    def __init__(self, turn: TurnAnswer, times: int) -> None:
        self._turn = turn
        self._times = times

    def may_ask(self, plan: Plan) -> bool:
        """Tell whether the model may be asked again."""
        return bool(plan.request.tools) and plan.corrections < self._times

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        """Return a plan that asks for the broken or lost calls again."""
        if not self.may_ask(plan):
            return failure
        if isinstance(failure, BrokenCalls):
            request = correction_request(plan.request, failure.said, failure.calls)
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
