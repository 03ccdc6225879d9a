"""The routes under /v1, with which OpenAI clients use byok's upstreams and keys.

Requests and answers are passed on as they are, but for the model's name; only errors
are written here, in the shape that OpenAI's API reference gives them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

from byok.errors import (
    MODEL_NOT_FOUND,
    BadRequest,
    ByokError,
    ConfigError,
    NotAllowed,
    NotReady,
    UpstreamError,
    UpstreamRefused,
    UpstreamTimeout,
)

if TYPE_CHECKING:
    from byok.model_ids import ListedModel

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
    """List the models of all upstreams, or tell of the `wanted` one."""

    path: str
    method: str = "GET"
    wanted: str = ""


OpenAIRoute: TypeAlias = Forward | ListModels

ROUTES: tuple[OpenAIRoute, ...] = (
    Forward("/v1/chat/completions"),
    Forward("/v1/completions"),
    Forward("/v1/embeddings"),
    Forward("/v1/responses"),
    ListModels("/v1/models"),
)


# The commonest mistake is a base URL without /v1: such a client is served all the same.
_BARE = {row.path.removeprefix("/v1"): row for row in ROUTES}
_ONE = "/models/"


def find_route(path: str) -> OpenAIRoute | None:
    """Return the route of a path without /v1, or with the id of a model; else None.

    `path` has no query; the id may be percent-encoded.
    """
    bare = path.removeprefix("/v1")
    if bare.startswith(_ONE) and bare != _ONE:
        wanted = unquote(bare.removeprefix(_ONE))
        return ListModels("/v1/models/{id}", wanted=wanted)
    return _BARE.get(path)


def is_openai(raw_path: str) -> bool:
    """Tell whether whoever asks for this path is an OpenAI client."""
    path = raw_path.partition("?")[0]
    return path.startswith(PREFIX) or find_route(path) is not None


def model_list(models: Iterable["ListedModel"]) -> dict[str, Any]:
    """Write the answer of `GET /v1/models`."""
    return {"object": "list", "data": [_model(m) for m in models]}


def one_model(models: Iterable["ListedModel"], wanted: str) -> dict[str, Any]:
    """Write the answer of `GET /v1/models/{id}`; a plain name may be an id, too.

    Raises:
        BadRequest: 404, no such model is known.
    """
    for model in models:
        if wanted in (model.id, model.label):
            return _model(model)
    raise BadRequest(
        "There is no such model.",
        code=MODEL_NOT_FOUND,
        hint="See GET /v1/models.",
        status=404,
    )


def _model(model: "ListedModel") -> dict[str, Any]:
    return {
        "id": model.id,
        "object": "model",
        "created": 0,
        "owned_by": model.upstream,
    }


def status_of(error: ByokError) -> int:
    """Return the HTTP status: the upstream's own, where it gave one.

    Other failures that may pass are a gateway's 502 and 504, so that these clients
    repeat the request: unlike the editor's, they give up after a few.
    """
    if isinstance(error, UpstreamRefused) and error.upstream_status >= 400:
        return error.upstream_status
    if isinstance(error, UpstreamError) and error.retryable:
        return 504 if isinstance(error, UpstreamTimeout) else 502
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
