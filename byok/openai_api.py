"""The routes under /v1: any OpenAI client may share byok's upstreams and keys.

Requests and answers are passed on as they are, but for the model's name; only errors
are written here, in the shape that OpenAI's API reference gives them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from byok.errors import (
    MODEL_NOT_FOUND,
    BadRequest,
    ByokError,
    ConfigError,
    NotAllowed,
    NotReady,
    UpstreamRefused,
)

if TYPE_CHECKING:
    from byok.augment.models import ListedModel

PREFIX = "/v1/"
_MAX_BODY = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Forward:
    """Pass a request on to the upstream's endpoint of the same name."""

    path: str
    max_body: int = _MAX_BODY

    @property
    def upstream_path(self) -> str:
        """The path relative to an upstream's base URL."""
        return self.path.removeprefix(PREFIX)


@dataclass(frozen=True, slots=True)
class ListModels:
    """List the models of all upstreams."""

    path: str
    method: str = "GET"


OpenAIRoute: TypeAlias = Forward | ListModels

ROUTES: tuple[OpenAIRoute, ...] = (
    Forward("/v1/chat/completions"),
    Forward("/v1/completions"),
    Forward("/v1/embeddings"),
    Forward("/v1/responses"),
    ListModels("/v1/models"),
)


def is_openai(raw_path: str) -> bool:
    """Tell whether whoever asks for this path is an OpenAI client."""
    return raw_path.startswith(PREFIX)


def model_list(models: Iterable["ListedModel"]) -> dict[str, Any]:
    """Write the answer of `GET /v1/models`."""
    rows = [
        {"id": m.id, "object": "model", "created": 0, "owned_by": m.upstream}
        for m in models
    ]
    return {"object": "list", "data": rows}


def status_of(error: ByokError) -> int:
    """Return the HTTP status: a client's own mistake keeps the upstream's."""
    if error.code == MODEL_NOT_FOUND:
        return 404
    if isinstance(error, UpstreamRefused) and 400 <= error.upstream_status < 500:
        return error.upstream_status
    return error.status


def error_body(error: ByokError) -> dict[str, Any]:
    """Write an error; `code` is the upstream's own where it gave one."""
    code = error.upstream_code if isinstance(error, UpstreamRefused) else ""
    return {
        "error": {
            "message": error.sentence,
            "type": _kind(error),
            "param": None,
            "code": code or error.code,
        }
    }


def _kind(error: ByokError) -> str:
    match error:
        case NotAllowed():
            return "authentication_error"
        case BadRequest() | ConfigError():
            return "invalid_request_error"
        case NotReady():
            return "server_error"
        case UpstreamRefused():
            return _KINDS.get(error.upstream_status, "api_error")
        case _:
            return "api_error"


_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    413: "invalid_request_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
}
