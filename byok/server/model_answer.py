"""A model's answer: events become lines for the client as they come, or one object.

A request has two phases: its body is read, then it is answered without the body. A body
may have tens of megabytes, and ten times that once it is parsed; an answer may take
minutes. So `prepare` methods read a body and return a `LateAnswer`: a function
that answers once, and holds what the answer needs but nothing of the body. `Endpoints`
releases the body, and its slot among the large ones, before it calls that function. It
raises a ByokError only before anything was sent.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from math import inf
from typing import Generic, TypeAlias, TypeVar

from aiohttp.web_response import StreamResponse
from msgspec import Struct, field

from byok.core.chat import ChatRequest, Json, ToolCall
from byok.core.errors import ByokError
from byok.core.events import (
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallPlace,
    Usage,
    begins_answer,
)
from byok.core.record import Listener, RequestRecord
from byok.core.redact import Redactor
from byok.core.wire.json_lines import encode_line
from byok.features.base import PASS, Verdict
from byok.protocols.augment.chat_request import ConversationPosition
from byok.protocols.augment.history import call_ids
from byok.protocols.augment.reply_job import LineReply, ObjectReply
from byok.server.admission import Admission
from byok.server.http.reply import (
    HttpExchange,
    error_for_user,
    explain_failure,
    json_response,
)
from byok.server.http.stream import LineStream
from byok.settings.sections import ToolSettings
from byok.upstream.ask import ask, new_call_id
from byok.upstream.base import Destination
from byok.upstream.own_tools import OwnTools
from byok.upstream.provider_data_store import ProviderDataStore
from byok.upstream.toolcalls.assemble import ToolCallAssembler
from byok.upstream.toolcalls.provider_data import CallDataCollector
from byok.upstream.toolcalls.repair import Repair

_log = logging.getLogger(__name__)
_EXCERPT_CHARS = 60  # of a repaired tool call, in the log
_COLLECTED = (ThinkingDelta, ToolCallPlace)
_EMPTY_CHAT = ChatRequest(())
LateAnswer: TypeAlias = Callable[[], Awaitable[StreamResponse]]
R_co = TypeVar("R_co", bound=LineReply | ObjectReply, covariant=True)


class AnswerTools(Struct, frozen=True):
    """What all answers share: rules for tool calls, stores, and the redactor.

    `own` are byok's own tools, which models call and byok runs.
    """

    settings: ToolSettings
    provider_data: ProviderDataStore
    redactor: Redactor
    own: OwnTools = field(default_factory=OwnTools)


class ModelAnswer(Struct, Generic[R_co], eq=False):
    """A model's answer on its way from the upstream to the client; used once.

    With `logs_notices`, notices are logged, because the reply has no place for them. If
    the `verdict` ends the request, no upstream is asked: the answer fails with the
    refusal of the verdict, or consists of its text.
    """

    destination: Destination
    chat: ChatRequest
    reply: R_co
    record: RequestRecord
    tools: AnswerTools
    verdict: Verdict = PASS
    logs_notices: bool = False
    _collector: CallDataCollector | None = None
    _max_calls: float = 1  # tool calls that the client accepts in a turn
    _calls: int = 0
    is_asked: bool = False  # `events` was called
    has_lines: bool = False  # `lines` has returned lines before the last ones
    ended: bool = False  # the upstream has ended its answer
    last_lines: list[Json] = []  # the lines of the end
    __repr__ = object.__repr__  # it must not show the conversation

    def events(self) -> aclosing[AsyncGenerator[list[StreamEvent], None]]:
        """Ask the upstream; return the events of its answer."""
        self.is_asked = True
        destination, record = self.destination, self.record
        chat, self.chat = self.chat, _EMPTY_CHAT  # it may be large
        verdict = self.verdict
        if verdict.ends:
            kind = TextDelta if self.logs_notices else Notice
            finish = Finish(FinishReason.STOP)
            return aclosing(
                _own_events(kind(verdict.answer), finish, error=verdict.refusal)
            )
        record.upstream, record.model = destination.upstream.name, destination.model
        if not chat.messages:
            return aclosing(_own_events())
        for notice in verdict.notices:
            record.notices += 1
            self.reply.feed(Notice(notice))
        if own_turn := self.tools.own.begin(chat):
            chat = own_turn.request
        if chat.client_parallel_tools:
            self._max_calls = inf
        if chat.tools:
            self._collector = CallDataCollector(chat)
        batches = ask(
            destination,
            chat,
            self._new_assembler,
            corrections=self.tools.settings.ask_again,
            own=own_turn,
        )
        if record.listener is not None:
            batches = _yield_and_show(batches, record.listener)
        return aclosing(batches)

    def lines(self, batch: list[StreamEvent]) -> list[Json]:
        """Turn the events of one network read into lines.

        The read with the upstream's `Finish` event also gives the last lines.
        """
        record = self.record
        if record.first_byte is None and begins_answer(batch):
            record.note_first_byte()
        ready: list[Json] = []
        collector = self._collector
        for event in batch:
            if type(event) is Usage:  # takes half the time of isinstance
                record.usage = event
            elif type(event) is Notice:
                self._record_notice(event)
                if collector and event.is_restart:
                    collector.note(event)
            elif type(event) is ToolCall and not self._accept_call(event):
                continue
            elif collector and type(event) in _COLLECTED:
                collector.note(event)
            ready += self.reply.feed(event)
        if batch and isinstance(batch[-1], Finish):
            self.end(ready)
        elif ready:
            self.has_lines = True
        return ready

    def end(self, lines: Iterable[Json] = ()) -> None:
        """End the answer."""
        if self._collector is not None:
            self.tools.provider_data.keep(self._collector.entries)
        last_lines = [*lines, *self.reply.flush()]
        self.ended, self.last_lines = True, last_lines

    def note_failure(self, error: ByokError) -> ByokError:
        """Log and record a failure; return the error without secrets."""
        self.record.note_error(error)
        name = self.record.upstream or self.destination.upstream.name
        request_id = self.record.request_id
        _log.warning("request %s to %s: %s", request_id, name, error.log_text)
        return error_for_user(error, self.tools.redactor)

    def _accept_call(self, call: ToolCall) -> bool:
        """Record a call, and return whether to pass it on: some clients accept one."""
        self._calls += 1
        if self._calls > self._max_calls:
            _log.info("this client takes one tool call a turn; left out: %s", call.name)
            return False
        if self._collector is not None:
            self._collector.note(call)
            self.record.tool_calls.append(call.name)
        return True

    def _record_notice(self, notice: Notice) -> None:
        if not self.logs_notices:
            self.record.notices += 1
            return
        text = self.tools.redactor(notice.text)
        _log.info("request %s: %s", self.record.request_id, text)

    def _log_repair(self, repair: Repair) -> None:
        """Log a repair: its rule, and the text around the first change."""
        self.record.repairs += 1
        redactor = self.tools.redactor
        before, after = _excerpts(redactor(repair.before), redactor(repair.after))
        _log.info(
            "tool call of %s repaired (%s): %s -> %s",
            repair.tool,
            repair.rule,
            before,
            after,
        )

    def _count_drop(self, name: str) -> None:
        self.record.dropped_calls += 1
        _log.info("a tool call of %.60s was cut or is not JSON", name)

    def _new_assembler(self, chat: ChatRequest) -> ToolCallAssembler:
        return ToolCallAssembler(
            chat.tools,
            new_id=new_call_id,
            mode=self.tools.settings.repair,
            user_text=chat.own_words,
            taken=call_ids(chat.messages),
            on_repair=self._log_repair,
            on_drop=self._count_drop,
        )


async def _own_events(
    *events: StreamEvent, error: ByokError | None = None
) -> AsyncGenerator[list[StreamEvent], None]:
    """Yield events of byok's own, or fail with an error; no upstream is asked."""
    if error is not None:
        raise error
    if events:
        yield [*events]


async def _yield_and_show(
    batches: AsyncGenerator[list[StreamEvent], None], listener: Listener
) -> AsyncGenerator[list[StreamEvent], None]:
    """Yield the events of an answer, and show them to a listener."""
    async with aclosing(batches):
        async for batch in batches:
            listener(batch)
            yield batch


def _excerpts(before: str, after: str) -> tuple[str, str]:
    """Return an excerpt of each text at the first difference: logs hold little code."""
    same = 0
    for left, right in zip(before, after, strict=False):
        if left != right:
            break
        same += 1
    start = max(0, same - _EXCERPT_CHARS // 3)
    end = start + _EXCERPT_CHARS
    return repr(before[start:end]), repr(after[start:end])


class StreamedAnswer(Struct, frozen=True):
    """Answers with lines as they come; `place` is the place in the conversation."""

    exchange: HttpExchange
    model_answer: ModelAnswer[LineReply]
    place: ConversationPosition | None
    admission: Admission
    open_stream: Callable[..., LineStream]
    encode: Callable[[Json], bytes] = encode_line
    fails_with_status: bool = False  # as long as the head was not sent

    async def answer(self) -> StreamResponse:
        """Stream the answer.

        Until the upstream is asked or the head of the stream is sent, an error is
        raised and becomes an HTTP status; from then on it is in the last lines.
        """
        reply = self.model_answer.reply
        async with self.open_stream(
            self.exchange,
            first=self._encode(reply.first),
            heartbeat=self._encode(reply.heartbeat),
            is_late=not reply.keeps_part,
        ) as stream:
            try:
                await self._send_lines(stream)
            except ConnectionError:
                raise  # the client is gone
            except Exception as error:
                failure = explain_failure(error, self.exchange.request_id)
                if not (self.model_answer.is_asked or stream.response.prepared):
                    raise failure from error
                if not self.model_answer.ended:  # a whole answer cannot fail any more
                    await self._end_broken(stream, failure)
                    return stream.response
            await stream.finish(self._encode_all(self.model_answer.last_lines))
        return stream.response

    async def _send_lines(self, stream: LineStream) -> None:
        """Send the lines of the answer except the last ones."""
        model_answer = self.model_answer
        async with (
            self.admission.enter(self.place, stream.keep_alive),
            model_answer.events() as batches,
        ):
            stream.keep_alive()
            async for batch in batches:
                lines = model_answer.lines(batch)
                if lines and not model_answer.ended:
                    await stream.write(self._encode_all(lines))
        if not model_answer.ended:
            model_answer.end()

    async def _end_broken(self, stream: LineStream, error: ByokError) -> None:
        """End the stream of an answer that failed."""
        error = self.model_answer.note_failure(error)
        reply = self.model_answer.reply
        by_status = self.fails_with_status or not reply.keeps_part
        if by_status and not stream.response.prepared:
            raise error
        end = self._encode_all(reply.fail(error))
        has_begun = self.model_answer.has_lines or reply.first is not None
        if has_begun and not reply.keeps_part:
            await stream.break_off(end)
        else:
            await stream.finish(end)

    def _encode(self, line: Json | None) -> bytes:
        return b"" if line is None else self.encode(line)

    def _encode_all(self, lines: Iterable[Json]) -> bytes:
        return b"".join(map(self.encode, lines))


async def answer_whole(
    model_answer: ModelAnswer[ObjectReply],
    place: ConversationPosition | None,
    admission: Admission,
) -> StreamResponse:
    """Answer with one object at the end; `place` is the place in the conversation.

    A failure is raised, or the reply writes it into the object.
    """
    try:
        async with admission.enter(place), model_answer.events() as batches:
            async for batch in batches:
                model_answer.lines(batch)
        if not model_answer.ended:
            model_answer.end()
    except Exception as error:
        failure = explain_failure(error, model_answer.record.request_id)
        if not model_answer.is_asked:
            raise failure from error
        if not model_answer.ended:  # a whole answer cannot fail any more
            failure = model_answer.note_failure(failure)
            return json_response(model_answer.reply.fail_whole(failure))
    return json_response(model_answer.last_lines[-1])


async def answer_with(body: Json) -> StreamResponse:
    """Answer with an object that is already known."""
    return json_response(body)


async def answer_by(handler: Callable[[], Awaitable[Json]]) -> StreamResponse:
    """Answer with the object that a handler returns; it may hold a small body."""
    return json_response(await handler())
