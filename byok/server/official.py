"""Relay of requests to the official service; byok answers where the service fails."""

import asyncio
import logging
import time
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from msgspec import Struct, field

from byok.core.chat import Json
from byok.core.errors import (
    ByokError,
    KeyMissing,
    NotReady,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
)
from byok.core.routing import OFFICIAL, EndpointGroup, ServedBy
from byok.core.wire.inflate import Inflate
from byok.core.wire.json_body import parse_json
from byok.protocols.augment.endpoints import Endpoint
from byok.protocols.augment.models import merge_models
from byok.server.http.deadlines import OfficialTiming
from byok.server.http.gate import Gate
from byok.server.http.reply import COMMON, HttpExchange
from byok.server.http.stream import LINES, OpenStream
from byok.server.model_answer import LateAnswer
from byok.settings.sections import OfficialSettings
from byok.upstream.base import ForwardedResponse
from byok.upstream.http_body import MAX_WHOLE, read_to_end
from byok.upstream.official import OfficialService, too_late

# Failures of the official service: logged once, and again only after it recovered.
#
# Most failures are the service's and concern a whole group of endpoints; one that
# refuses a single request, as with 404, concerns that path.


_log = logging.getLogger(__name__)
_OF_THE_SERVICE = frozenset({401, 402, 403, 407, 408, 425, 429})


class _Trouble(Struct):
    whole: str = ""  # what keeps the group from it
    paths: dict[str, str] = field(default_factory=dict)


class OfficialHealth:
    """Keeps the failures of each group; a silent service is left alone for `pause`."""

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self._keyless = False
        self._found: dict[EndpointGroup, _Trouble] = {
            group: _Trouble() for group in EndpointGroup
        }
        self._until: dict[EndpointGroup, float] = {}

    def is_paused(self, group: EndpointGroup) -> bool:
        """Tell whether the group has just waited in vain."""
        return time.monotonic() < self._until.get(group, 0.0)

    def note_failure(self, group: EndpointGroup, path: str, error: ByokError) -> None:
        """Note a failure, and write down a new one."""
        trouble, reason = self._found[group], _reason(error)
        if isinstance(error, UpstreamTimeout):
            self._until[group] = time.monotonic() + self._pause
        if isinstance(error, KeyMissing):
            known, self._keyless = self._keyless, True
        elif _concerns_path(error):
            known = path in trouble.paths
            trouble.paths[path] = reason
        else:
            known = bool(trouble.whole)
            trouble.whole = trouble.whole or reason
        if not known:
            _log.warning(
                "the official service does not answer %s (group %s), so byok does: %s",
                path,
                group,
                reason,
            )

    def over(self, group: EndpointGroup, path: str) -> None:
        """Note that the service answered."""
        trouble, self._keyless = self._found[group], False
        if trouble.paths.pop(path, "") or trouble.whole:
            trouble.whole = ""
            _log.info("the official service answers %s (group %s) again", path, group)

    @property
    def reasons(self) -> dict[str, str]:
        """What is wrong, by group or path."""
        found: dict[str, str] = {}
        for group, trouble in self._found.items():
            if trouble.whole:
                found[group.value] = trouble.whole
            found |= trouble.paths
        if self._keyless:
            found["no token"] = "byok keys set official"
        return found


def _concerns_path(error: ByokError) -> bool:
    if not isinstance(error, UpstreamRefused):
        return False
    status = error.upstream_status
    return 400 <= status < 500 and status not in _OF_THE_SERVICE


def _reason(error: ByokError) -> str:
    """Say what happened, without the words of others."""
    if isinstance(error, UpstreamRefused):
        return f"it answered {error.upstream_status}. {error.hint}".strip()
    return error.log_text


_MAX_MODELS = 4 * 2**20
_PIECE = 2**16  # of a compressed answer; each piece may expand a lot
_TYPE, _ENCODING = "Content-Type", "Content-Encoding"
_MODELS = "/get-models"


class Relay:
    """Relays requests to the official service."""

    def __init__(
        self,
        service: OfficialService,
        settings: OfficialSettings,
        gate: Gate,
        timing: OfficialTiming,
    ) -> None:
        self._service = service
        self._settings = settings
        self._gate = gate
        self._timing = timing
        self._health = OfficialHealth(self._timing.pause)
        if groups := settings.groups:
            url = settings.base_url
            _log.info("the official service at %s answers: %s", url, ", ".join(groups))
        elif settings.lacks_address:
            _log.warning("[routing.official] has no base_url: byok answers every group")

    async def answer(
        self,
        row: Endpoint,
        group: EndpointGroup,
        content: bytes,
        exchange: HttpExchange,
        locally: LateAnswer,
    ) -> StreamResponse:
        """Answer as the service does, byte for byte; where it does not, `locally`.

        The content of the request is not looked at. An answer in one piece is used
        whole or not at all.
        """
        if not self._health.is_paused(group):
            is_stream = getattr(row, "stream", False)
            pass_on = self._pass_on_stream if is_stream else self._pass_on_whole
            try:
                async with self._gate.enter():
                    return await pass_on(row.path, group, content, exchange)
            except ByokError as error:
                if not isinstance(error, NotReady):
                    self._health.note_failure(group, row.path, error)
        return await locally()

    async def models(self, content: bytes, request: BaseRequest, ours: Json) -> Json:
        """Return the service's models and flags with ours in them, else ours alone."""
        group = EndpointGroup.MODELS
        if self._health.is_paused(group):
            return ours
        try:
            answer, raw = await self._whole(
                _MODELS, group, content, request, _MAX_MODELS
            )
            merged = await asyncio.to_thread(self._merge, answer, raw, ours)
        except ByokError as error:
            self._health.note_failure(group, _MODELS, error)
            return ours
        self._health.over(group, _MODELS)
        return merged

    def _merge(self, answer: ForwardedResponse, raw: bytes, ours: Json) -> Json:
        return merge_models(_object(answer, raw), ours, self._settings.groups)

    async def status(self, body: Json) -> dict[str, Any]:
        """Return which groups go to the service, and what is wrong with that."""
        places = {group: self._settings.where(group) for group in EndpointGroup}
        return {
            "base_url": self._settings.base_url,
            "groups": {g: p for g, p in places.items() if p is not ServedBy.LOCAL},
            "troubles": self._health.reasons,
        }

    def _ask_service(
        self, path: str, group: EndpointGroup, content: bytes, request: BaseRequest
    ) -> AbstractAsyncContextManager[ForwardedResponse]:
        seconds = self._timing.until_first(group)
        return self._service.ask(path, content, request.headers, seconds)

    async def _whole(
        self,
        path: str,
        group: EndpointGroup,
        content: bytes,
        request: BaseRequest,
        most: int = MAX_WHOLE,
    ) -> tuple[ForwardedResponse, bytes]:
        asked = self._ask_service(path, group, content, request)
        try:
            async with asyncio.timeout(self._timing.in_all(group)), asked as answer:
                return answer, await read_to_end(answer.reads, most)
        except TimeoutError as error:
            raise too_late() from error

    async def _pass_on_whole(
        self, path: str, group: EndpointGroup, content: bytes, exchange: HttpExchange
    ) -> StreamResponse:
        """Relay a response that is not a stream, once all of it is here."""
        async with self._gate.raise_on_stop():
            answer, raw = await self._whole(path, group, content, exchange.request)
        self._health.over(group, path)
        exchange.record.upstream = OFFICIAL
        headers = _headers({**COMMON, _TYPE: "application/json"}, answer)
        return Response(body=raw, status=answer.status, headers=headers)

    async def _pass_on_stream(
        self, path: str, group: EndpointGroup, content: bytes, exchange: HttpExchange
    ) -> StreamResponse:
        """Relay a stream as it comes; one that breaks is closed without an end."""
        async with AsyncExitStack() as stack:
            async with self._gate.raise_on_stop():
                asked = self._ask_service(path, group, content, exchange.request)
                answer = await stack.enter_async_context(asked)
            self._health.over(group, path)
            exchange.record.upstream = OFFICIAL
            return await self._stream(exchange, answer)

    async def _stream(
        self, exchange: HttpExchange, answer: ForwardedResponse
    ) -> StreamResponse:
        stream = OpenStream(exchange, _headers(LINES, answer), status=answer.status)
        try:
            async with self._gate.raise_on_stop():
                async for data in answer.reads:
                    await stream.write(data)
        except ByokError as error:
            exchange.record.note_error(error)
            _log.warning("a stream of the official service broke: %s", error.log_text)
            await stream.break_off(b"")
        else:
            await stream.finish()
        return stream.response


def _headers(own: Json, answer: ForwardedResponse) -> dict[str, str]:
    """Describe the body in the service's words, whatever their case."""
    return {**own, **{name.title(): value for name, value in answer.headers.items()}}


def _object(answer: ForwardedResponse, raw: bytes) -> Json:
    coding = _headers({}, answer).get(_ENCODING, "")
    try:
        found = parse_json(_plain(coding, raw))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UpstreamGarbled("its model list is not a JSON object.")
    return found


def _plain(coding: str, raw: bytes) -> bytes:
    inflate = Inflate(coding)
    pieces = (raw[n : n + _PIECE] for n in range(0, len(raw), _PIECE))
    return b"".join(plain for piece in pieces for plain in inflate.feed(piece))
