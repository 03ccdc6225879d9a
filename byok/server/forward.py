"""Forwarding for OpenAI clients: request and answer pass byte for byte."""

import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiohttp.web import Response, StreamResponse

from byok.augment.body import first_text
from byok.dialects.openai_chat.usage import usage_near_end
from byok.errors import ByokError
from byok.record import RequestRecord
from byok.redact import Redactor
from byok.server.http.exchange import HttpExchange
from byok.server.http.gate import Gate
from byok.server.http.reply import COMMON
from byok.server.http.stream import OpenStream
from byok.server.openai_api import Forward, error_body
from byok.threads import Runner
from byok.upstream.base import ForwardedResponse
from byok.upstream.http_body import read_to_end
from byok.upstream.router import Destination, Router
from byok.wire.json_body import write_json
from byok.wire.json_splice import with_string

_log = logging.getLogger(__name__)
_TYPE = "content-type"
_JSON = {_TYPE: "application/json"}
_END = 4096  # bytes at the end of a stream, where it counts its tokens


@dataclass(frozen=True, slots=True)
class ForwardedRequest:
    """A request that is ready to be passed on."""

    forwarder: "Forwarder"
    exchange: HttpExchange
    destination: Destination
    path: str
    content: bytes

    async def answer(self) -> StreamResponse:
        """Answer streamed or whole, as the upstream does."""
        return await self.forwarder.forward(self)


class Forwarder:
    """Answers the Forward routes."""

    def __init__(
        self, router: Router, redactor: Redactor, gate: Gate, *, patience: float = 30.0
    ) -> None:
        self._router = router
        self._redactor = redactor
        self._gate = gate
        self._patience = patience

    async def understand(
        self,
        row: Forward,
        raw: bytes,
        body: dict[str, Any],
        exchange: HttpExchange,
        run: Runner,
    ) -> ForwardedRequest:
        """Choose the upstream; only the model's name changes in the bytes."""
        destination = await self._router.choose_listed(first_text(body, "model"))
        model = destination.model
        content = await run(partial(with_string, raw, body, "model", model))
        path = row.upstream_path
        return ForwardedRequest(self, exchange, destination, path, content)

    async def forward(self, sent: ForwardedRequest) -> StreamResponse:
        """Send a request and pass the answer on.

        Raises:
            ByokError: before anything was sent.
        """
        upstream, record = sent.destination.upstream, sent.exchange.record
        record.upstream, record.model = upstream.name, sent.destination.model
        begun = upstream.forward(sent.path, sent.content)
        async with self._gate.enter(), AsyncExitStack() as stack:
            async with self._gate.raise_on_stop():
                answer = await stack.enter_async_context(begun)
                record.note_first_byte()
                headers = {**COMMON, **_JSON, **answer.headers}
                if not headers[_TYPE].startswith("text/event-stream"):
                    whole = await read_to_end(answer.reads)
                    record.usage = usage_near_end(whole)
                    return Response(body=whole, headers=headers)
            return await self._stream(sent.exchange, headers, answer)

    async def _stream(
        self, exchange: HttpExchange, headers: dict[str, str], answer: ForwardedResponse
    ) -> StreamResponse:
        end = b""
        async with OpenStream(exchange, headers, patience=self._patience) as stream:
            try:
                async with self._gate.raise_on_stop():
                    async for data in answer.reads:
                        end = (end + data)[-_END:]
                        await stream.write(data)
                exchange.record.usage = usage_near_end(end)
            except ByokError as error:
                await stream.write(self._last_words(error, exchange.record))
            await stream.finish()
        return stream.response

    def _last_words(self, error: ByokError, record: RequestRecord) -> bytes:
        """Tell of a failure in the middle as one more event, as OpenAI does."""
        model = record.model_id
        _log.warning("a stream from %s broke: %s", model, error.log_text)
        record.note_error(error)
        shown = error_body(error.redact(self._redactor))
        return b"\n\ndata: " + write_json(shown) + b"\n\n"
