"""The routes under /v1, for clients of OpenAI's and Anthropic's APIs.

Where the upstream has an API of the same protocol, requests and answers are passed on
as they are, but for the model's name. Otherwise they are translated.
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
_MESSAGES = "/v1/messages"
_MAX_BODY = 64 * 2**20
_UNKNOWN_TIME = "1970-01-01T00:00:00Z"  # as Anthropic writes it


class Forward(Struct, frozen=True):
    """Pass a request on to the upstream's endpoint of the same name."""

    path: str
    max_body: int = _MAX_BODY

    @property
    def upstream_path(self) -> str:
        """The path relative to an upstream's base URL."""
        return self.path.removeprefix(PREFIX)


class Ask(Forward, frozen=True, kw_only=True):
    """Pass a question on, or translate it where the upstream speaks another protocol.

    `encode` writes an event of the answer.
    """

    decode: Callable[[Json], "Question"]
    encode: Callable[[Json], bytes] = encode_named


class CountTokens(Forward, frozen=True, kw_only=True):
    """Pass on a question about the length of a prompt, or estimate it.

    `about` is what the answer holds besides.
    """

    decode: Callable[[Json], "Question"]
    about: Json = {}


class ListModels(Struct, frozen=True):
    """List the models of all upstreams, or tell of the `wanted` one."""

    path: str
    method: str = "GET"
    wanted: str = ""


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


# The commonest mistake is a base URL without /v1, or with it where the client adds it,
# as Anthropic's do: such a client is served all the same.
_PATHS = {
    path: row
    for row in ROUTES
    for path in (row.path, row.path.removeprefix("/v1"), f"/v1{row.path}")
}
_ONE = "/models/"
CODEX_VERSION = "client_version"
"""The parameter with which Codex alone asks for models."""


def find_route(path: str) -> OpenAIRoute | None:
    """Return the route of a path, also without /v1 or with it twice; else None.

    `path` has no query; the id of a model in it may be percent-encoded.
    """
    bare = path.removeprefix("/v1")
    if bare.startswith(_ONE) and bare != _ONE:
        wanted = unquote(bare.removeprefix(_ONE))
        return ListModels("/v1/models/{id}", wanted=wanted)
    return _PATHS.get(path)


def takes_api_key(raw_path: str) -> bool:
    """Tell whether the token may come as `X-Api-Key`, as of Anthropic's clients."""
    return find_route(raw_path.partition("?")[0]) is not None


class ClientApi(Enum):
    """Whose protocol a client speaks, by the path that it asks for."""

    EDITOR = "editor"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    MCP = "mcp"


def client_api(raw_path: str) -> ClientApi:
    """Return whose protocol the client speaks that asks for a path."""
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
    """Write the answer of `GET /v1/models`, with the fields of both APIs.

    Codex reads a list of its own form, `models`, and logs an error without one. Each
    row would need a system prompt, which takes the place of Codex's own. An empty list
    changes none of its models; other clients would take it for the whole answer.
    """
    rows = [_model(m) for m in models]
    ends = {"first_id": rows[0]["id"], "last_id": rows[-1]["id"]} if rows else {}
    answer = {"object": "list", "data": rows, "has_more": False, **ends}
    return {**answer, "models": []} if is_for_codex else answer


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
        "type": "model",
        "display_name": model.model,
        "created_at": _UNKNOWN_TIME,
    }
