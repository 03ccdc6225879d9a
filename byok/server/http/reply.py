"""One HTTP request on its way through the server, and whole HTTP responses."""

import logging
from typing import TYPE_CHECKING, Any

from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response
from msgspec import Struct

from byok.core.errors import (
    BadJson,
    BadRequest,
    ByokError,
    NotAllowed,
    UpstreamError,
    UpstreamRefused,
)
from byok.core.platform.installation import find_command, make_pasteable, make_plain
from byok.core.platform.process import lacks_memory, memory_is_short
from byok.core.record import RequestRecord
from byok.core.redact import Redactor
from byok.core.wire.json_lines import encode_line
from byok.protocols.v1.fields import anthropic_error, openai_error, status_of
from byok.server.http.guard import Requester
from byok.server.openai_api import ClientApi, client_api

if TYPE_CHECKING:
    from byok.core.chat import Json


_log = logging.getLogger(__name__)
_PARSE_ERROR, _INVALID_REQUEST = -32700, -32600  # of JSON-RPC
BASE_HEADERS = {  # headers of all responses
    "Server": "byok",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}


def id_headers(request_id: str) -> dict[str, str]:
    """Return the headers with the id under which the log names the request.

    OpenAI's SDKs read the first header, Anthropic's the second.
    """
    return {"X-Request-Id": request_id, "Request-Id": request_id}


def json_response(body: "Json", status: int = 200) -> Response:
    """Answer with one object."""
    return Response(
        body=encode_line(body),
        status=status,
        headers={**BASE_HEADERS, "Content-Type": "application/json"},
    )


def body_bytes(response: Response) -> bytes:
    """Return the body of a whole answer, as observers see it."""
    return response.body if isinstance(response.body, bytes) else b""


def error_for_user(error: ByokError, redactor: Redactor) -> ByokError:
    """Return an error without secrets, with commands as they reach this byok.

    To do it twice changes nothing: the paths of commands are removed first, because a
    path behind "key:" looks like a secret.
    """
    command = find_command()
    return error.rewrite(
        lambda text: make_pasteable(redactor(make_plain(text)), command)
    )


def error_body(error: ByokError, request_id: str) -> dict[str, Any]:
    """Build the object of an error that the editor's clients read."""
    return {
        "error": {
            "code": error.code,
            "message": str(error),
            "hint": error.hint,
            "request_id": request_id,
            "retryable": error.retryable,
        },
        "message": str(error),
    }


def error_response(
    error: ByokError,
    request_id: str,
    redactor: Redactor,
    api: ClientApi = ClientApi.EDITOR,
) -> Response:
    """Build the response of an error in the client's format; no lasting one is 5xx."""
    safe, status = error_for_user(error, redactor), error.status
    match api:
        case ClientApi.OPENAI:
            body, status = openai_error(safe), status_of(error)
        case ClientApi.ANTHROPIC:
            body, status = anthropic_error(safe, request_id), status_of(error)
        case ClientApi.MCP:
            body = _json_rpc_error(safe)
        case ClientApi.EDITOR:
            body = error_body(safe, request_id)
    response = json_response(body, status)
    if isinstance(error, UpstreamRefused) and error.retry_after is not None:
        response.headers["Retry-After"] = str(round(error.retry_after))
    elif error.status == 503:
        response.headers["Retry-After"] = "2"
    is_unread = error.status in (400, 408, 413) and not isinstance(error, UpstreamError)
    if is_unread or isinstance(error, NotAllowed):
        response.force_close()  # the body need not be read, nor a stranger served
    return response


def _json_rpc_error(error: ByokError) -> dict[str, Any]:
    """Build the error for a message that could not be parsed, and so has no id."""
    code = _PARSE_ERROR if isinstance(error, BadJson) else _INVALID_REQUEST
    fields = {"code": code, "message": error.sentence, "data": {"code": error.code}}
    return {"jsonrpc": "2.0", "id": None, "error": fields}


def explain_failure(error: Exception, request_id: str) -> ByokError:
    """Return the error for the client of any exception; log byok's own faults."""
    if isinstance(error, ByokError):
        return error
    if lacks_memory(error):
        failure = memory_is_short("this request")
        _log.warning("request %s: %s", request_id, failure.sentence)
        return failure
    _log.error("request %s failed", request_id, exc_info=error)
    return internal_error()


def internal_error() -> ByokError:
    """Return the error for a fault of byok's own, whose details are in the log."""
    return ByokError(
        "Internal error.",
        hint="See the log: byok service logs",
    )


class HttpExchange(Struct):
    """A request, its record, and how its errors are written.

    `requester` is set once the token was checked.
    """

    request: BaseRequest
    record: RequestRecord
    redactor: Redactor
    requester: Requester = Requester.CLIENT

    @property
    def request_id(self) -> str:
        """The id of the request in answers and in the log."""
        return self.record.request_id

    def write_error(self, error: ByokError) -> Response:
        """Record an error, and build its response in this client's format."""
        self.record.note_error(error)
        api = client_api(self.request.raw_path)
        return error_response(error, self.request_id, self.redactor, api)

    def refuse_method(self, allowed: str) -> Response:
        """Refuse a request with another method; close the connection if it has a body.

        Without a body the connection stays open: agents request a stream of MCP, and
        send their next message on the same connection before they have the answer.
        """
        error = BadRequest(
            f"Use {allowed} here.", code="method_not_allowed", status=405
        )
        response = self.write_error(error)
        response.headers["Allow"] = allowed
        if self.request.body_exists:
            response.force_close()
        return response
