"""One answer on its way from the upstream to the client."""

import logging
import uuid
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from byok.augment.conversation import Place
from byok.augment.history import call_ids
from byok.augment.reply_job import LineReply, ObjectReply
from byok.chat import ChatRequest, Json
from byok.errors import ByokError
from byok.events import Finish, Notice, StreamEvent, Usage
from byok.record import current_record
from byok.toolcalls.assemble import ToolCallAssembler
from byok.toolcalls.repair import Repair
from byok.upstream.router import Destination
from byok.upstream.tool_call_retry import stream_whole_calls
from byok.wiring.services import Services

_log = logging.getLogger(__name__)
_SHOWN = 60
_FORGOTTEN = ChatRequest(())


class AnswerTurn:
    """One answer on its way from the upstream to the client."""

    def __init__(
        self,
        services: Services,
        choice: Destination,
        chat: ChatRequest,
        reply: LineReply | ObjectReply,
        request_id: str,
        place: Place | None = None,
        notices: Iterable[Notice] = (),
    ) -> None:
        self._services = services
        self._choice = choice
        self._record = current_record()
        self._chat = chat
        self._reply = reply
        self._notices = notices
        self.request_id = request_id
        self.place = place  # in its conversation
        self.admitted = False  # its turn came, and there was a place
        self.ended = False  # by the upstream's own last word
        self.last: list[Json] = []  # the lines that came with it

    def events(self) -> aclosing[AsyncGenerator[list[StreamEvent], None]]:
        """Ask the upstream, and give the events of its answer."""
        self.admitted = True
        self._record.model = self._choice.model_id
        chat, self._chat = self._chat, _FORGOTTEN  # it may be large
        if not chat.messages:
            return aclosing(_nothing())
        for notice in self._notices:
            self._reply.feed(notice)
        choice = self._choice
        kept = self._services.provider_data
        chat = kept.restore(choice.upstream.name, choice.model, chat)
        again = self._services.settings.tools.ask_again
        return aclosing(
            stream_whole_calls(self._choice, chat, self._assembling, again=again)
        )

    def lines(self, batch: list[StreamEvent]) -> list[Json]:
        """Turn the events of one network read into lines.

        The last ones come with the read that holds the upstream's own last word.
        """
        if self._record.first_byte is None:
            self._record.note_first_byte()
        ready: list[Json] = []
        for event in batch:
            if isinstance(event, Usage):
                self._record.usage = event
            ready += self._reply.feed(event)
        if batch and isinstance(batch[-1], Finish):
            self.end(ready)
        return ready

    def end(self, ready: Iterable[Json] = ()) -> None:
        """End the answer."""
        last = [*ready, *self._reply.flush()]
        self.ended, self.last = True, last
        if omitted := self._reply.omitted_tools:
            _log.info("this client takes one tool call a turn; left out: %s", omitted)

    def note_failure(self, error: ByokError) -> ByokError:
        """Write a failure down, and make it fit to be told."""
        self._record.failure = error.code
        name = self._choice.upstream.name
        _log.warning("request %s to %s: %s", self.request_id, name, error.log_text)
        return error.redact(self._services.redactor)

    def _log_repair(self, repair: Repair) -> None:
        """Write down a repair: its rule, and the place where it began."""
        self._record.repairs += 1
        redactor = self._services.redactor
        before, after = _difference(redactor(repair.before), redactor(repair.after))
        _log.info(
            "tool call of %s repaired (%s): %s -> %s",
            repair.tool,
            repair.rule,
            before,
            after,
        )

    def _assembling(self, chat: ChatRequest) -> ToolCallAssembler:
        return ToolCallAssembler(
            chat.tools,
            new_id=lambda: f"call_{uuid.uuid4().hex[:24]}",
            mode=self._services.settings.tools.repair,
            user_text=chat.own_words,
            taken=call_ids(chat.messages),
            on_repair=self._log_repair,
            on_provider_data=self._services.provider_data.keep,
        )


async def _nothing() -> AsyncGenerator[list[StreamEvent], None]:
    return
    yield []  # makes it a generator


def _difference(before: str, after: str) -> tuple[str, str]:
    """Cut two texts around their first difference: code is not kept in logs whole."""
    same = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        same += 1
    start = max(0, same - _SHOWN // 3)
    return repr(before[start : start + _SHOWN]), repr(after[start : start + _SHOWN])
