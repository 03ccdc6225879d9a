"""One model's answer: the upstream's events become the client's lines."""

import logging
import uuid
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass

from byok.augment.history import call_ids
from byok.augment.reply_job import LineReply, ObjectReply
from byok.chat import ChatRequest, Json, ToolCall
from byok.config.sections import ToolSettings
from byok.errors import ByokError
from byok.events import (
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    ThinkingDelta,
    ToolCallPlace,
    Usage,
    begins_answer,
)
from byok.record import RequestRecord
from byok.redact import Redactor
from byok.server.http.reply import error_for_user
from byok.toolcalls.assemble import ToolCallAssembler
from byok.toolcalls.provider_data import CallDataCollector
from byok.toolcalls.repair import Repair
from byok.upstream.provider_data_store import ProviderDataStore
from byok.upstream.router import Destination
from byok.upstream.tool_call_retry import stream_whole_calls

_log = logging.getLogger(__name__)
_SHOWN = 60
_COLLECTED = (ThinkingDelta, ToolCallPlace, ToolCall)
_FORGOTTEN = ChatRequest(())


@dataclass(frozen=True, slots=True)
class AnswerTools:
    """What all answers share: rules for tool calls, and what redacts their errors."""

    settings: ToolSettings
    provider_data: ProviderDataStore
    redactor: Redactor


class ModelAnswer:
    """A model's answer on its way from the upstream to the client; used once."""

    def __init__(
        self,
        destination: Destination,
        chat: ChatRequest,
        reply: LineReply | ObjectReply,
        record: RequestRecord,
        tools: AnswerTools,
        *,
        notices: Iterable[Notice] = (),
        logs_notices: bool = False,
        refusal: ByokError | None = None,
    ) -> None:
        """Take what it needs; `logs_notices`: the reply has no place for notices.

        With a `refusal` no upstream is asked: that is how the answer fails.
        """
        self._destination = destination
        self._chat = chat
        self._reply = reply
        self._record = record
        self._tools = tools
        self._notices = notices
        self._collector: CallDataCollector | None = None
        self._logs_notices = logs_notices
        self._refusal = refusal
        self.begun = False  # the upstream is being asked
        self.has_lines = False  # lines were given before the last ones
        self.ended = False  # by the upstream's own last word
        self.last: list[Json] = []  # the lines that came with it

    def events(self) -> aclosing[AsyncGenerator[list[StreamEvent], None]]:
        """Ask the upstream, and give the events of its answer."""
        self.begun = True
        asked, record = self._destination, self._record
        chat, self._chat = self._chat, _FORGOTTEN  # it may be large
        record.loop = chat.loop
        if self._refusal is not None:
            return aclosing(_fail(self._refusal))
        if chat.ended:
            return aclosing(_only(Notice(chat.ended), Finish(FinishReason.STOP)))
        record.upstream, record.model = asked.upstream.name, asked.model
        if not chat.messages:
            return aclosing(_only())
        for notice in self._notices:
            record.notices += 1
            self._reply.feed(notice)
        if chat.tools:
            self._collector = CallDataCollector(chat)
        again = self._tools.settings.ask_again
        return aclosing(
            stream_whole_calls(
                self._destination, chat, self._new_assembler, again=again
            )
        )

    def lines(self, batch: list[StreamEvent]) -> list[Json]:
        """Turn the events of one network read into lines.

        The last ones come with the read that holds the upstream's own last word.
        """
        record = self._record
        if record.first_byte is None and begins_answer(batch):
            record.note_first_byte()
        ready: list[Json] = []
        collector = self._collector
        for event in batch:
            if type(event) is Usage:  # half as long as isinstance, for every event
                record.usage = event
            elif type(event) is Notice:
                self._note(event)
                if collector and event.is_restart:
                    collector.note(event)
            elif collector and type(event) in _COLLECTED:
                collector.note(event)
                if type(event) is ToolCall:
                    record.tool_calls.append(event.name)
            ready += self._reply.feed(event)
        if batch and isinstance(batch[-1], Finish):
            self.end(ready)
        elif ready:
            self.has_lines = True
        return ready

    def end(self, ready: Iterable[Json] = ()) -> None:
        """End the answer."""
        if self._collector is not None:
            self._tools.provider_data.keep(self._collector.entries)
        last = [*ready, *self._reply.flush()]
        self.ended, self.last = True, last
        if omitted := self._reply.omitted_tools:
            del self._record.tool_calls[-len(omitted) :]
            _log.info("this client takes one tool call a turn; left out: %s", omitted)

    def note_failure(self, error: ByokError) -> ByokError:
        """Log a failure and note it; return the error without secrets."""
        self._record.note_error(error)
        name, request_id = self._destination.upstream.name, self._record.request_id
        _log.warning("request %s to %s: %s", request_id, name, error.log_text)
        return error_for_user(error, self._tools.redactor)

    def _note(self, notice: Notice) -> None:
        if not self._logs_notices:
            self._record.notices += 1
            return
        told = self._tools.redactor(notice.text)
        _log.info("request %s: %s", self._record.request_id, told)

    def _log_repair(self, repair: Repair) -> None:
        """Log a repair: its rule, and the text around the first change."""
        self._record.repairs += 1
        redactor = self._tools.redactor
        before, after = _difference(redactor(repair.before), redactor(repair.after))
        _log.info(
            "tool call of %s repaired (%s): %s -> %s",
            repair.tool,
            repair.rule,
            before,
            after,
        )

    def _count_drop(self, name: str) -> None:
        self._record.dropped_calls += 1
        _log.info("a tool call of %.60s was cut or is not JSON", name)

    def _new_assembler(self, chat: ChatRequest) -> ToolCallAssembler:
        return ToolCallAssembler(
            chat.tools,
            new_id=lambda: f"call_{uuid.uuid4().hex[:24]}",
            mode=self._tools.settings.repair,
            user_text=chat.own_words,
            taken=call_ids(chat.messages),
            on_repair=self._log_repair,
            on_drop=self._count_drop,
        )


async def _only(*events: StreamEvent) -> AsyncGenerator[list[StreamEvent], None]:
    """Give events of byok's own; no upstream is asked."""
    if events:
        yield [*events]


async def _fail(error: ByokError) -> AsyncGenerator[list[StreamEvent], None]:
    """Fail before any upstream is asked."""
    raise error
    yield []  # makes it a generator


def _difference(before: str, after: str) -> tuple[str, str]:
    """Cut two texts around their first difference: logs should hold little code."""
    same = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        same += 1
    start = max(0, same - _SHOWN // 3)
    return repr(before[start : start + _SHOWN]), repr(after[start : start + _SHOWN])
