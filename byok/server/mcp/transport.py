"""MCP's Streamable HTTP: one POST is one message, and there are no sessions.

A request is answered by one JSON object, or by a stream of events if progress is
reported first. Protocol versions that begin with `initialize` and those that describe
the client in each request are served alike, as no state is kept between messages.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

import anyio
from aiohttp.web_response import Response, StreamResponse
from mcp.server.connection import Connection
from mcp.server.runner import modern_error_data, serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundLadderRejection,
    classify_inbound_request,
    find_duplicated_routing_header,
)
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    DEFAULT_NEGOTIATED_VERSION,
    HEADER_MISMATCH,
    UNSUPPORTED_PROTOCOL_VERSION,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from byok.core.chat import Json
from byok.core.wire.sse import encode_data
from byok.server.http.reply import BASE_HEADERS, HttpExchange, json_response
from byok.server.http.stream import EVENT_HEADERS, OpenStream
from byok.server.mcp.tools import CodeSource, make_server, read_message

_VERSION = "MCP-Protocol-Version"
_JSON, _EVENTS = "application/json", "text/event-stream"


class MessageServer:
    """Answers one message after another with the SDK's server."""

    def __init__(self, source: CodeSource) -> None:
        self._server = make_server(source)

    async def answer(self, exchange: HttpExchange, body: Json) -> StreamResponse:
        """Answer a message in a content type that the client accepts."""
        headers = exchange.request.headers
        accepted = _accepted_types(headers.get("Accept", "*/*"))
        if not accepted:
            return Response(status=406, headers=BASE_HEADERS)
        message = read_message(body)
        if isinstance(message, JSONRPCError):
            return _make_response(message, 400)
        version = headers.get(_VERSION, DEFAULT_NEGOTIATED_VERSION)
        is_old = version in HANDSHAKE_PROTOCOL_VERSIONS
        if not isinstance(message, JSONRPCRequest):
            if refused := _refuse_version(version):
                return _refuse(refused, None)
            return Response(status=202, headers=BASE_HEADERS)
        connection = _connect(version, is_old, headers, body)
        if isinstance(connection, InboundLadderRejection):
            return _refuse(connection, message.id)
        stream = OpenStream(exchange, EVENT_HEADERS)
        context = _Request(message, headers, stream if _EVENTS in accepted else None)
        reply = await self._serve(message, context, connection)
        if stream.response.prepared or _JSON not in accepted:
            await stream.finish(_encode(reply))
            return stream.response
        status = 200
        if isinstance(reply, JSONRPCError) and not is_old:
            status = ERROR_CODE_HTTP_STATUS.get(reply.error.code, 200)
        return _make_response(reply, status)

    async def _serve(
        self, message: JSONRPCRequest, context: "_Request", connection: Connection
    ) -> JSONRPCResponse | JSONRPCError:
        try:
            result = await serve_one(
                self._server,
                context,
                message.method,
                message.params,
                connection=connection,
                lifespan_state={},
            )
        except Exception as error:  # the SDK's own, or a fault, which it logs
            error_data = modern_error_data(error)
            return JSONRPCError(jsonrpc="2.0", id=message.id, error=error_data)
        return JSONRPCResponse(jsonrpc="2.0", id=message.id, result=result)


class _Request:
    """The transport of one request, with the methods that the SDK calls."""

    message_metadata = None
    can_send_request = False

    def __init__(
        self,
        message: JSONRPCRequest,
        headers: Mapping[str, str],
        stream: OpenStream | None,
    ) -> None:
        self.transport = TransportContext(
            kind="streamable-http", can_send_request=False, headers=headers
        )
        self.request_id = message.id
        # A client that disconnects cancels the handler.
        self.cancel_requested = anyio.Event()
        self._token = progress_token_from_params(message.params)
        self._stream = stream

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
    ) -> None:
        if self._stream is not None:
            fields = None if params is None else {**params}
            message = JSONRPCNotification(jsonrpc="2.0", method=method, params=fields)
            with contextlib.suppress(ConnectionError):  # the handler is cancelled soon
                await self._stream.write(_encode(message))

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        fields = {"progress": progress, "total": total, "message": message}
        if self._token is not None:
            params = {"progressToken": self._token, **fields}
            await self.notify("notifications/progress", params)


def _accepted_types(header: str) -> set[str]:
    """Return which of the two content types of answers a client accepts."""
    names = {part.partition(";")[0].strip().lower() for part in header.split(",")}
    return {
        kind
        for kind in (_JSON, _EVENTS)
        if names & {kind, "*/*", f"{kind.partition('/')[0]}/*"}
    }


def _connect(
    version: str, is_old: bool, headers: Mapping[str, str], body: Json
) -> Connection | InboundLadderRejection:
    """Return the connection to a client, or the reason why its headers are refused."""
    if name := find_duplicated_routing_header(headers.items()):
        return InboundLadderRejection(HEADER_MISMATCH, f"{name} was sent twice")
    if is_old:
        return Connection.from_envelope(version, None, None)
    lower = {name.lower(): value for name, value in headers.items()}
    route = classify_inbound_request(body, headers=lower)
    if isinstance(route, InboundLadderRejection):
        return _refuse_version(version) or route
    return Connection.from_envelope(
        route.protocol_version, route.client_info, route.client_capabilities
    )


def _refuse_version(version: str) -> InboundLadderRejection | None:
    """Return why a protocol version is refused, None if it is supported."""
    supported = (*MODERN_PROTOCOL_VERSIONS, *HANDSHAKE_PROTOCOL_VERSIONS)
    if version in supported:
        return None
    data = {"supported": [*supported], "requested": version}
    message = "Unsupported protocol version"
    return InboundLadderRejection(UNSUPPORTED_PROTOCOL_VERSION, message, data)


def _refuse(reason: InboundLadderRejection, id: str | int | None) -> Response:
    error = ErrorData(code=reason.code, message=reason.message, data=reason.data)
    status = ERROR_CODE_HTTP_STATUS.get(reason.code, 400)
    return _make_response(JSONRPCError(jsonrpc="2.0", id=id, error=error), status)


def _make_response(reply: JSONRPCResponse | JSONRPCError, status: int) -> Response:
    return json_response(_dump(reply), status)


def _encode(message: JSONRPCNotification | JSONRPCResponse | JSONRPCError) -> bytes:
    return encode_data(_dump(message))


def _dump(
    message: JSONRPCNotification | JSONRPCResponse | JSONRPCError,
) -> dict[str, Any]:
    fields = message.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(message, JSONRPCError):
        fields["id"] = message.id  # null if it is unknown
    return fields
