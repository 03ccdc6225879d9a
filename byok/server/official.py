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
from byok.server.admission import Gate
from byok.server.http.deadlines import OfficialTiming
from byok.server.http.reply import BASE_HEADERS, HttpExchange
from byok.server.http.stream import LINE_HEADERS, OpenStream
from byok.server.model_answer import LateAnswer
from byok.settings.sections import OfficialSettings
from byok.upstream.base import ForwardedResponse
from byok.upstream.http_body import MAX_WHOLE, read_to_end
from byok.upstream.official import OfficialService, too_late

_log = logging.getLogger(__name__)
# Statuses that concern the service; the others of 4xx concern a single request.
_STATUSES_OF_SERVICE = frozenset({401, 402, 403, 407, 408, 425, 429})
_MAX_MODELS_BYTES = 4 * 2**20
_PIECE_BYTES = 2**16  # of a compressed answer, inflated at once: it may expand a lot
_TYPE, _ENCODING = "Content-Type", "Content-Encoding"
_MODELS = "/get-models"


class _Failures(Struct):
    """The failures of a group of endpoints, each as a reason in words."""

    group_reason: str = ""  # why the service answers none of the group
    paths: dict[str, str] = field(default_factory=dict)


class OfficialHealth:
    """Keeps the failures of each group; logs each once until the service recovers.

    Most failures are the service's and concern a whole group; a refusal of a single
    request, as with 404, concerns its path. After a timeout, a group is paused for
    `pause` seconds.
    """

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self._lacks_token = False
        self._failures: dict[EndpointGroup, _Failures] = {
            group: _Failures() for group in EndpointGroup
        }
        self._paused_until: dict[EndpointGroup, float] = {}

    def is_paused(self, group: EndpointGroup) -> bool:
        """Tell whether a request of the group has timed out within the last pause."""
        return time.monotonic() < self._paused_until.get(group, 0.0)

    def note_failure(self, group: EndpointGroup, path: str, error: ByokError) -> None:
        """Store a failure, and log it if it is new."""
        failures, reason = self._failures[group], _describe(error)
        if isinstance(error, UpstreamTimeout):
            self._paused_until[group] = time.monotonic() + self._pause
        if isinstance(error, KeyMissing):
            is_logged, self._lacks_token = self._lacks_token, True
        elif _concerns_path(error):
            is_logged = path in failures.paths
            failures.paths[path] = reason
        else:
            is_logged = bool(failures.group_reason)
            failures.group_reason = failures.group_reason or reason
        if not is_logged:
            _log.warning(
                "the official service does not answer %s (group %s), so byok does: %s",
                path,
                group,
                reason,
            )

    def note_success(self, group: EndpointGroup, path: str) -> None:
        """Forget the failures that an answer of the service disproves."""
        failures, self._lacks_token = self._failures[group], False
        if failures.paths.pop(path, "") or failures.group_reason:
            failures.group_reason = ""
            _log.info("the official service answers %s (group %s) again", path, group)

    @property
    def reasons(self) -> dict[str, str]:
        """The reasons of failures, by group or path."""
        result: dict[str, str] = {}
        for group, failures in self._failures.items():
            if failures.group_reason:
                result[group.value] = failures.group_reason
            result |= failures.paths
        if self._lacks_token:
            result["no token"] = "byok keys set official"
        return result


def _concerns_path(error: ByokError) -> bool:
    if not isinstance(error, UpstreamRefused):
        return False
    status = error.upstream_status
    return 400 <= status < 500 and status not in _STATUSES_OF_SERVICE


def _describe(error: ByokError) -> str:
    """Describe an error without the service's own words."""
    if isinstance(error, UpstreamRefused):
        return f"it answered {error.upstream_status}. {error.hint}".strip()
    return error.log_text


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
        answer_locally: LateAnswer,
    ) -> StreamResponse:
        """Pass on the service's answer byte for byte; if it fails, `answer_locally`.

        The content of the request is not inspected. An answer that is not a stream is
        used only if it is complete.
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
        return await answer_locally()

    async def models(self, content: bytes, request: BaseRequest, ours: Json) -> Json:
        """Return the service's models and flags merged with ours, or ours alone."""
        group = EndpointGroup.MODELS
        if self._health.is_paused(group):
            return ours
        try:
            answer, raw = await self._fetch(
                _MODELS, group, content, request, _MAX_MODELS_BYTES
            )
            merged = await asyncio.to_thread(self._merge, answer, raw, ours)
        except ByokError as error:
            self._health.note_failure(group, _MODELS, error)
            return ours
        self._health.note_success(group, _MODELS)
        return merged

    def _merge(self, answer: ForwardedResponse, raw: bytes, ours: Json) -> Json:
        return merge_models(_parse_model_list(answer, raw), ours, self._settings.groups)

    async def status(self, body: Json) -> dict[str, Any]:
        """Return which groups go to the service, and its failures."""
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

    async def _fetch(
        self,
        path: str,
        group: EndpointGroup,
        content: bytes,
        request: BaseRequest,
        max_bytes: int = MAX_WHOLE,
    ) -> tuple[ForwardedResponse, bytes]:
        opened = self._ask_service(path, group, content, request)
        try:
            async with asyncio.timeout(self._timing.in_all(group)), opened as answer:
                return answer, await read_to_end(answer.reads, max_bytes)
        except TimeoutError as error:
            raise too_late() from error

    async def _pass_on_whole(
        self, path: str, group: EndpointGroup, content: bytes, exchange: HttpExchange
    ) -> StreamResponse:
        """Relay a response that is not a stream, once it is complete."""
        async with self._gate.raise_on_stop():
            answer, raw = await self._fetch(path, group, content, exchange.request)
        self._health.note_success(group, path)
        exchange.record.upstream = OFFICIAL
        headers = _headers({**BASE_HEADERS, _TYPE: "application/json"}, answer)
        return Response(body=raw, status=answer.status, headers=headers)

    async def _pass_on_stream(
        self, path: str, group: EndpointGroup, content: bytes, exchange: HttpExchange
    ) -> StreamResponse:
        """Relay a stream as it comes; a broken one is closed without its end."""
        async with AsyncExitStack() as stack:
            async with self._gate.raise_on_stop():
                opened = self._ask_service(path, group, content, exchange.request)
                answer = await stack.enter_async_context(opened)
            self._health.note_success(group, path)
            exchange.record.upstream = OFFICIAL
            return await self._stream(exchange, answer)

    async def _stream(
        self, exchange: HttpExchange, answer: ForwardedResponse
    ) -> StreamResponse:
        headers = _headers(LINE_HEADERS, answer)
        stream = OpenStream(exchange, headers, status=answer.status)
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
    """Add the service's headers about the body, which override our own."""
    return {**own, **{name.title(): value for name, value in answer.headers.items()}}


def _parse_model_list(answer: ForwardedResponse, raw: bytes) -> Json:
    coding = _headers({}, answer).get(_ENCODING, "")
    try:
        value = parse_json(_inflate(coding, raw))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UpstreamGarbled("its model list is not a JSON object.")
    return value


def _inflate(coding: str, raw: bytes) -> bytes:
    inflate = Inflate(coding)
    pieces = (raw[n : n + _PIECE_BYTES] for n in range(0, len(raw), _PIECE_BYTES))
    return b"".join(plain for piece in pieces for plain in inflate.feed(piece))
