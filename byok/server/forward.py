"""Pass a request of an OpenAI client on, and the answer back, byte for byte."""

import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiohttp.web import BaseRequest, Response, StreamResponse

from byok.augment.body import first_text
from byok.dialects.openai_chat.usage import usage_near_end
from byok.errors import ByokError
from byok.record import current_record
from byok.server.http.gate import Gate
from byok.server.http.reply import COMMON
from byok.server.http.stream import OpenStream
from byok.server.openai_api import Forward, error_body
from byok.threads import Runner
from byok.upstream.base import Forwarded
from byok.upstream.http_body import read_to_end
from byok.upstream.router import Destination
from byok.wire.json_body import write_json
from byok.wire.json_splice import with_string
from byok.wiring.services import Services

_log = logging.getLogger(__name__)
_TYPE = "content-type"
_JSON = {_TYPE: "application/json"}
_END = 4096  # bytes at the end of a stream, where it counts its tokens


@dataclass(frozen=True, slots=True)
class Forwarding:
    """A request that is ready to be passed on."""

    choice: Destination
    path: str
    content: bytes


class Forwarder:
    """Answers the Forward routes."""

    def __init__(
        self, services: Services, gate: Gate, *, patience: float = 30.0
    ) -> None:
        self._services = services
        self._gate = gate
        self._patience = patience

    async def forwarding(
        self, row: Forward, raw: bytes, body: dict[str, Any], run: Runner
    ) -> "Forwarding":
        """Say what is sent where."""
        router = self._services.router
        choice = await router.choose_listed(first_text(body, "model"))
        content = await run(partial(with_string, raw, body, "model", choice.model))
        return Forwarding(choice, row.upstream_path, content)

    async def answer(self, sent: "Forwarding", request: BaseRequest) -> StreamResponse:
        """Answer one request, streamed or whole as the upstream does."""
        begun = sent.choice.upstream.forward(sent.path, sent.content)
        record = current_record()
        record.model = sent.choice.model_id
        async with self._gate.enter(), AsyncExitStack() as stack:
            async with self._gate.raise_on_stop():
                answer = await stack.enter_async_context(begun)
                record.note_first_byte()
                headers = {**COMMON, **_JSON, **answer.headers}
                if not headers[_TYPE].startswith("text/event-stream"):
                    body = await read_to_end(answer.reads)
                    record.usage = usage_near_end(body)
                    return Response(body=body, headers=headers)
            return await self._stream_answer(request, headers, answer)

    async def _stream_answer(
        self, request: BaseRequest, headers: dict[str, str], answer: Forwarded
    ) -> StreamResponse:
        end = b""
        async with OpenStream(request, headers, patience=self._patience) as stream:
            try:
                async with self._gate.raise_on_stop():
                    async for data in answer.reads:
                        end = (end + data)[-_END:]
                        await stream.write(data)
                current_record().usage = usage_near_end(end)
            except ByokError as error:
                await stream.write(self._last_words(error))
            await stream.finish()
        return stream.response

    def _last_words(self, error: ByokError) -> bytes:
        """Tell of a failure in the middle as one more event, as OpenAI does."""
        model = current_record().model
        _log.warning("a stream from %s broke: %s", model, error.log_text)
        shown = error_body(error.redact(self._services.redactor))
        return b"\n\ndata: " + write_json(shown) + b"\n\n"
