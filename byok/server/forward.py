"""Forwarding for OpenAI clients: request and answer pass byte for byte."""

import logging
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from aiohttp.web import Response, StreamResponse

from byok.core.errors import ByokError
from byok.core.events import Usage
from byok.core.redact import Redactor
from byok.core.threads import Runner
from byok.core.wire.json_body import with_string
from byok.core.wire.sse import encode_data, encode_named
from byok.dialects.openai_chat.chunks import usage_near_end
from byok.protocols.v1.fields import anthropic_error, openai_error
from byok.server.http.gate import Gate
from byok.server.http.reply import COMMON, HttpExchange, error_for_user
from byok.server.http.stream import OpenStream
from byok.server.openai_api import ClientApi, Forward, client_api
from byok.upstream.base import Destination, ForwardedResponse
from byok.upstream.http_call import read_to_end

_log = logging.getLogger(__name__)
_TYPE = "content-type"
_JSON = {_TYPE: "application/json"}
_PASSED = ("anthropic-version", "anthropic-beta")
_PLAIN = re.compile(r"[ -~]{1,1000}")  # the value of a header
_END = 4096  # bytes at the end of a stream, where it counts its tokens


@dataclass(frozen=True, slots=True)
class ForwardedRequest:
    """A request that is ready to be passed on."""

    forwarder: "Forwarder"
    exchange: HttpExchange
    destination: Destination
    path: str
    content: bytes
    headers: Mapping[str, str]

    async def answer(self) -> StreamResponse:
        """Answer streamed or whole, as the upstream does."""
        return await self.forwarder.forward(self)


class Forwarder:
    """Answers the Forward routes."""

    def __init__(
        self, redactor: Redactor, gate: Gate, *, patience: float = 30.0
    ) -> None:
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
        destination: Destination,
    ) -> ForwardedRequest:
        """Prepare a request; only the model's name changes in the bytes."""
        model = destination.model
        content = await run(partial(with_string, raw, body, "model", model))
        path, headers = row.upstream_path, _passed_headers(row, exchange)
        return ForwardedRequest(self, exchange, destination, path, content, headers)

    async def forward(self, sent: ForwardedRequest) -> StreamResponse:
        """Send a request and pass the answer on.

        Raises:
            ByokError: before anything was sent.
        """
        upstream, record = sent.destination.upstream, sent.exchange.record
        record.upstream, record.model = upstream.name, sent.destination.model
        begun = upstream.forward(sent.path, sent.content, sent.headers)
        async with self._gate.enter(), AsyncExitStack() as stack:
            async with self._gate.raise_on_stop():
                answer = await stack.enter_async_context(begun)
                record.note_first_byte()
                headers = {**COMMON, **_JSON, **answer.headers}
                if not headers[_TYPE].startswith("text/event-stream"):
                    whole = await read_to_end(answer.reads)
                    record.usage = _count_tokens(sent.path, whole)
                    return Response(body=whole, headers=headers)
            return await self._stream(sent, headers, answer)

    async def _stream(
        self, sent: ForwardedRequest, headers: dict[str, str], answer: ForwardedResponse
    ) -> StreamResponse:
        exchange, end = sent.exchange, b""
        async with OpenStream(exchange, headers, patience=self._patience) as stream:
            try:
                async with self._gate.raise_on_stop():
                    async for data in answer.reads:
                        end = (end + data)[-_END:]
                        await stream.write(data)
                exchange.record.usage = _count_tokens(sent.path, end)
            except ByokError as error:
                await stream.write(self._last_words(error, exchange))
            await stream.finish()
        return stream.response

    def _last_words(self, error: ByokError, exchange: HttpExchange) -> bytes:
        """Tell of a failure in the middle as one more event, as the API does."""
        record = exchange.record
        model = record.model_id
        _log.warning("a stream from %s broke: %s", model, error.log_text)
        record.note_error(error)
        redacted = error_for_user(error, self._redactor)
        if client_api(exchange.request.raw_path) is ClientApi.ANTHROPIC:
            shown = encode_named(anthropic_error(redacted, record.request_id))
        else:
            shown = encode_data(openai_error(redacted))
        return b"\n\n" + shown


def _count_tokens(path: str, answer: bytes) -> Usage | None:
    """Read the token counts; Anthropic counts what was cached apart."""
    usage = usage_near_end(answer)
    if usage is None or path != "messages":
        return usage
    cached = usage.cache_read_tokens + usage.cache_creation_tokens
    return replace(usage, input_tokens=usage.input_tokens + cached)


def _passed_headers(row: Forward, exchange: HttpExchange) -> dict[str, str]:
    """Return the client's headers that change what Anthropic's API answers."""
    if not row.upstream_path.startswith("messages"):
        return {}
    given = exchange.request.headers
    found = {name: ",".join(given.getall(name, ())) for name in _PASSED}
    return {n: value for n, value in found.items() if _PLAIN.fullmatch(value)}
