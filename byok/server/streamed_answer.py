"""A model's answer as a stream of lines, and how a failure appears in it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from aiohttp.web import StreamResponse

from byok.augment.conversation import Place
from byok.augment.reply_job import LineReply
from byok.chat import Json
from byok.errors import ByokError
from byok.server.admission import Admission
from byok.server.http.exchange import HttpExchange
from byok.server.http.reply import explain_failure
from byok.server.http.stream import LineStream
from byok.server.model_answer import ModelAnswer
from byok.wire.ndjson import encode_line


@dataclass(frozen=True, slots=True)
class StreamedAnswer:
    """Answers with lines as they come; `place` is that in the conversation."""

    exchange: HttpExchange
    model_answer: ModelAnswer
    reply: LineReply
    place: Place | None
    admission: Admission
    open_stream: Callable[[HttpExchange], LineStream]
    encode: Callable[[Json], bytes] = encode_line
    fails_with_status: bool = False  # as long as the head is not out

    async def answer(self) -> StreamResponse:
        """Stream the answer.

        An error is raised, and becomes an HTTP status, until the upstream was asked or
        the head of the stream was sent; from then on the stream's last lines tell it.
        """
        async with self.open_stream(self.exchange) as stream:
            stream.begin_with(self._line(self.reply.first))
            stream.beat_with(self._line(self.reply.heartbeat))
            if not self.reply.keeps_part:
                stream.delay_head()
            try:
                await self._send_lines(stream)
            except ConnectionError:
                raise  # the client is gone
            except Exception as error:
                failure = explain_failure(error, self.exchange.request_id)
                if not (self.model_answer.begun or stream.response.prepared):
                    raise failure from error
                if not self.model_answer.ended:  # a whole answer cannot fail any more
                    await self._end_broken(stream, failure)
                    return stream.response
            await stream.finish(self._lines(self.model_answer.last))
        return stream.response

    async def _send_lines(self, stream: LineStream) -> None:
        """Send the lines of the answer but for the last ones."""
        model_answer = self.model_answer
        async with (
            self.admission.enter(self.place, stream.keep_alive),
            model_answer.events() as batches,
        ):
            stream.keep_alive()
            async for batch in batches:
                lines = model_answer.lines(batch)
                if lines and not model_answer.ended:
                    await stream.write(self._lines(lines))
        if not model_answer.ended:
            model_answer.end()

    async def _end_broken(self, stream: LineStream, error: ByokError) -> None:
        """End a stream whose answer broke."""
        error = self.model_answer.note_failure(error)
        reply = self.reply
        by_status = self.fails_with_status or not reply.keeps_part
        if by_status and not stream.response.prepared:
            raise error
        end = self._lines(reply.fail(error))
        has_begun = self.model_answer.has_lines or reply.first is not None
        if has_begun and not reply.keeps_part:
            await stream.break_off(end)
        else:
            await stream.finish(end)

    def _line(self, line: Json | None) -> bytes:
        return b"" if line is None else self.encode(line)

    def _lines(self, lines: Iterable[Json]) -> bytes:
        return b"".join(map(self.encode, lines))
