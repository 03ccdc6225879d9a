"""Retries of tool calls that are not JSON or were lost: the model is asked again.

An agent stops if a tool call is dropped. So the model is asked again: it sees its
answer and the error, and its second answer continues the first one. Where the
connection was lost inside a call, the same question is asked again if the client has
seen nothing of the call: calls are handed on at the end of an answer. A call that the
output limit cut off is not retried: it would be cut off again. Nor is an answer that
also had a valid call: the agent continues with that one's result, and a second answer
might repeat the call.
"""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

from byok.chat import ChatRequest
from byok.errors import UpstreamError
from byok.events import (
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Usage,
    shows_answer,
)
from byok.toolcalls.assemble import ToolCallAssembler
from byok.toolcalls.correction import Unsaid, answer_parts, correction_request
from byok.upstream.reasons import restart_notice
from byok.upstream.router import Destination

_log = logging.getLogger(__name__)
_FORGOTTEN = ChatRequest(())
_WHOLE = (FinishReason.STOP, FinishReason.TOOL_CALLS)


async def stream_whole_calls(
    whom: Destination,
    chat: ChatRequest,
    assembling: Callable[[ChatRequest], ToolCallAssembler],
    *,
    again: int,
) -> AsyncGenerator[list[StreamEvent], None]:
    """Yield the events of Upstream.stream, with tool calls that are whole.

    The model is asked again at most `again` times in a turn. A network read with only
    fragments of calls yields nothing.
    """
    name = whom.upstream.name
    shown, end = "", list[StreamEvent]()
    spent: Usage | None = None
    for left in range(again if chat.tools else 0, -1, -1):
        answer, begun = _Answer(assembling(chat), shown, spent, end), False
        stream = whom.upstream.stream(chat, whom.model)
        if not left:
            chat = _FORGOTTEN  # it may be large
        try:
            async with aclosing(stream) as batches:
                async for batch in batches:
                    out = answer.take(batch)
                    if answer.end and not answer.asks_again(chat):
                        out += answer.end
                    begun = begun or shows_answer(out)
                    yield out
            yield answer.rest()
        except UpstreamError as error:
            if left and (notice := answer.explain_loss(name, error)):
                shown, spent = shown + answer.visible_text, answer.spent
                _log.info("asking %s again: a tool call was lost", name)
                yield [notice]
                continue
            if begun or not end:
                if spent:
                    yield [spent]
                raise
            _log.warning("%s did not repeat its tool call: %s", name, error.log_text)
            yield end
            return
        if answer.correction is None:
            return
        chat, end = answer.correction, answer.end
        shown, spent = shown + answer.visible_text, answer.spent
        _log.info("asking %s again: a tool call is not valid JSON", name)


class _Answer:
    """One answer of a turn; `end` holds its last events until no retry follows.

    `shown` is the text of earlier answers, `spent` their usage, and `before` the end of
    the last one, which counts if this answer is empty: the user must hear of the call
    that was dropped.
    """

    def __init__(
        self,
        assembler: ToolCallAssembler,
        shown: str,
        spent: Usage | None,
        before: list[StreamEvent],
    ) -> None:
        self._assembler = assembler
        self._unsaid = Unsaid(shown)
        self._said: list[str | ThinkingDelta] = []
        self._given: list[str] = []
        self.spent = spent
        self._before: list[StreamEvent] = [
            event for event in before if not isinstance(event, Usage)
        ]
        self.end: list[StreamEvent] = []
        self.correction: ChatRequest | None = None
        self._finish: FinishReason | None = None

    def explain_loss(self, name: str, error: UpstreamError) -> Notice | None:
        """Return the notice before a lost answer is asked for again, None if it is not.

        Thoughts that are signed are not void: the client has them, and sends them back.
        """
        if not (error.retryable and self._assembler.has_hidden_call):
            return None
        thoughts = (said for said in self._said if isinstance(said, ThinkingDelta))
        is_void = not any(thought.provider_data for thought in thoughts)
        return replace(
            restart_notice(name, error, "calling a tool"), is_restart=is_void
        )

    @property
    def visible_text(self) -> str:
        """The text that the user sees."""
        return "".join(self._given)

    def take(self, batch: list[StreamEvent]) -> list[StreamEvent]:
        """Take the events of one network read; return those before the end."""
        out: list[StreamEvent] = []
        for event in batch:
            match event:
                case TextDelta(text=said):
                    self._said.append(said)
                    if new := self._unsaid.feed(said):
                        self._given.append(new)
                        shown = event if new is said else TextDelta(new)
                        if self._assembler.unplaced:
                            out += self._assembler.place_calls(shown)
                        out.append(shown)
                case Usage():
                    self.spent = event.plus(self.spent)
                case Finish(reason=reason):
                    self._finish = reason
                    calls: list[StreamEvent] = [*self._assembler.feed(event)]
                    if (
                        calls == [event]
                        and reason in _WHOLE
                        and not self.visible_text.strip()
                    ):
                        calls = self._before or calls
                    self.end = [self.spent, *calls] if self.spent else calls
                case _:
                    if isinstance(event, ThinkingDelta):
                        self._said.append(event)
                    elif isinstance(event, Notice) and event.is_restart:
                        self._said.clear()
                    out += self._assembler.feed(event)
        return out

    def rest(self) -> list[StreamEvent]:
        """Return the remaining events; there are some only without an end."""
        return list(self._assembler.flush())

    def asks_again(self, chat: ChatRequest) -> bool:
        """Tell whether to ask again, and prepare the request for it."""
        stage = self._assembler
        if not stage.others and self._finish in _WHOLE:
            said = answer_parts(self._said)
            self.correction = correction_request(chat, said, stage.broken)
        return self.correction is not None
