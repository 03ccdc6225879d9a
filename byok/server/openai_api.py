"""The routes under /v1, for clients of OpenAI's and Anthropic's APIs.

If the upstream has an API of the same protocol, requests and answers are passed on
unchanged except for the model's name. Otherwise they are translated.
"""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

from msgspec import Struct

from byok.core.chat import Json
from byok.core.errors import MODEL_NOT_FOUND, BadRequest
from byok.core.late import late_function
from byok.core.wire.sse import encode_data, encode_named

if TYPE_CHECKING:
    from byok.core.routing import ListedModel
    from byok.protocols.v1.block_reply import Question

PREFIX = "/v1/"
CODEX_VERSION = "client_version"  # a query parameter that only Codex sends
_MESSAGES = "/v1/messages"
_MODEL_PREFIX = "/models/"
_MAX_BODY_BYTES = 64 * 2**20
_UNKNOWN_DATE = "1970-01-01T00:00:00Z"  # as Anthropic writes it


class Forward(Struct, frozen=True):
    """Pass a request on to the upstream's endpoint of the same name."""

    path: str
    max_body: int = _MAX_BODY_BYTES

    @property
    def upstream_path(self) -> str:
        """The path relative to an upstream's base URL."""
        return self.path.removeprefix(PREFIX)


class Ask(Forward, frozen=True, kw_only=True):
    """Pass a question on, or translate it if the upstream has another protocol.

    `encode` serialises an event of the answer.
    """

    decode: Callable[[Json], "Question"]
    encode: Callable[[Json], bytes] = encode_named


class CountTokens(Forward, frozen=True, kw_only=True):
    """Pass on a question about the length of a prompt, or estimate the length.

    `about` holds the other fields of the answer.
    """

    decode: Callable[[Json], "Question"]
    about: Json = {}


class ListModels(Struct, frozen=True):
    """List the models of all upstreams, or describe the one with `model_id`."""

    path: str
    method: str = "GET"
    model_id: str = ""


OpenAIRoute: TypeAlias = Forward | Ask | CountTokens | ListModels

# Most daemons are never asked in these protocols.
_READ_COMPLETION = late_function("byok.protocols.v1.chat_completions:decode_completion")
_READ_RESPONSE = late_function("byok.protocols.v1.responses:decode_response")
_READ_MESSAGE = late_function("byok.protocols.v1.messages:decode_message")
ROUTES: tuple[OpenAIRoute, ...] = (
    Ask("/v1/chat/completions", decode=_READ_COMPLETION, encode=encode_data),
    Ask("/v1/responses", decode=_READ_RESPONSE),
    Ask("/v1/messages", decode=_READ_MESSAGE),
    CountTokens("/v1/messages/count_tokens", decode=_READ_MESSAGE),
    CountTokens(
        "/v1/responses/input_tokens",
        decode=_READ_RESPONSE,
        about={"object": "response.input_tokens"},
    ),
    Forward("/v1/completions"),
    Forward("/v1/embeddings"),
    ListModels("/v1/models"),
)
# The commonest mistake is a base URL without /v1, or with /v1 in a client that adds it,
# as Anthropic's do. Such clients are served, too.
_ROUTE_BY_PATH = {
    path: row
    for row in ROUTES
    for path in (row.path, row.path.removeprefix("/v1"), f"/v1{row.path}")
}


def find_route(path: str) -> OpenAIRoute | None:
    """Return the route of a path, if any; /v1 may be missing or stand there twice.

    `path` has no query; the id of a model in it may be percent-encoded.
    """
    bare = path.removeprefix("/v1")
    if bare.startswith(_MODEL_PREFIX) and bare != _MODEL_PREFIX:
        model_id = unquote(bare.removeprefix(_MODEL_PREFIX))
        return ListModels("/v1/models/{id}", model_id=model_id)
    return _ROUTE_BY_PATH.get(path)


def takes_api_key(raw_path: str) -> bool:
    """Tell whether the token may be in `X-Api-Key`, as Anthropic's clients send it."""
    return find_route(raw_path.partition("?")[0]) is not None


class ClientApi(Enum):
    """The protocol of a client, by the path that it requests."""

    EDITOR = "editor"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    MCP = "mcp"


def client_api(raw_path: str) -> ClientApi:
    """Return the protocol of a client that requests this path."""
    path = raw_path.partition("?")[0]
    if path.rstrip("/").endswith("/mcp"):
        return ClientApi.MCP
    route = find_route(path)
    if (route.path if route else path).startswith(_MESSAGES):
        return ClientApi.ANTHROPIC
    if route is not None or path.startswith(PREFIX):
        return ClientApi.OPENAI
    return ClientApi.EDITOR


def model_list(
    models: Iterable["ListedModel"], *, is_for_codex: bool = False
) -> dict[str, Any]:
    """Build the answer to `GET /v1/models`, with the fields of both APIs.

    Codex reads a list `models` in its own format, and logs an error without one. Each
    row would need a system prompt, which replaces Codex's own, so the list is empty,
    which changes none of Codex's models. Other clients would take it for the answer.
    """
    rows = [_model_row(m) for m in models]
    ends = {"first_id": rows[0]["id"], "last_id": rows[-1]["id"]} if rows else {}
    answer = {"object": "list", "data": rows, "has_more": False, **ends}
    return {**answer, "models": []} if is_for_codex else answer


def one_model(models: Iterable["ListedModel"], model_id: str) -> dict[str, Any]:
    """Build the answer to `GET /v1/models/{id}`; a model's plain name is accepted.

    Raises:
        BadRequest: 404, no such model is known.
    """
    for model in models:
        if model_id in (model.id, model.label):
            return _model_row(model)
    raise BadRequest(
        "There is no such model.",
        code=MODEL_NOT_FOUND,
        hint="See GET /v1/models.",
        status=404,
    )


def _model_row(model: "ListedModel") -> dict[str, Any]:
    return {
        "id": model.id,
        "object": "model",
        "created": 0,
        "owned_by": model.upstream,
        "type": "model",
        "display_name": model.model,
        "created_at": _UNKNOWN_DATE,
    }
