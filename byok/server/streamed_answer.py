"""A model's answer as a stream of lines, and how a failure appears in it."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from aiohttp.web import StreamResponse

from byok.augment.conversation import Place
from byok.augment.reply_job import LineReply
from byok.chat import Json
from byok.errors import ByokError
from byok.server.admission import Admission
from byok.server.http.exchange import HttpExchange
from byok.server.http.reply import internal_error
from byok.server.http.stream import LineStream
from byok.server.model_answer import ModelAnswer
from byok.wire.ndjson import encode_line

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StreamedAnswer:
    """Answers with lines as they come; `place` is that in the conversation."""

    exchange: HttpExchange
    model_answer: ModelAnswer
    reply: LineReply
    place: Place | None
    admission: Admission
    open_stream: Callable[[HttpExchange], LineStream]

    async def answer(self) -> StreamResponse:
        """Stream the answer.

        An error is raised, and becomes an HTTP status, until the upstream was asked or
        the head of the stream was sent; from then on the stream's last lines tell it.
        """
        model_answer = self.model_answer
        async with self.open_stream(self.exchange) as stream:
            stream.begin_with(_line(self.reply.first))
            stream.beat_with(_line(self.reply.heartbeat))
            begun = False
            try:
                async with (
                    self.admission.enter(self.place, stream.keep_alive),
                    model_answer.events() as batches,
                ):
                    stream.keep_alive()
                    async for batch in batches:
                        lines = model_answer.lines(batch)
                        if lines and not model_answer.ended:
                            begun = True
                            await stream.write(_lines(lines))
                if not model_answer.ended:
                    model_answer.end()
            except ConnectionError:
                raise  # the client is gone
            except Exception as error:
                failure = self._failure(error)
                if not (model_answer.begun or stream.response.prepared):
                    raise failure from error
                if not model_answer.ended:  # a whole answer cannot fail any more
                    await self._end_broken(stream, failure, begun=begun)
                    return stream.response
            await stream.finish(_lines(model_answer.last))
        return stream.response

    def _failure(self, error: Exception) -> ByokError:
        if isinstance(error, ByokError):
            return error
        _log.error("request %s failed", self.exchange.request_id, exc_info=error)
        return internal_error()

    async def _end_broken(
        self, stream: LineStream, error: ByokError, *, begun: bool
    ) -> None:
        """End a stream whose answer broke; `begun` where lines of it were sent."""
        error = self.model_answer.note_failure(error)
        reply = self.reply
        if not reply.keeps_part and not stream.response.prepared:
            raise error
        end = _lines(reply.fail(error))
        if begun and not reply.keeps_part:
            await stream.break_off(end)
        else:
            await stream.finish(end)


def _line(line: Json | None) -> bytes:
    return b"" if line is None else encode_line(line)


def _lines(lines: Iterable[Json]) -> bytes:
    return b"".join(map(encode_line, lines))
