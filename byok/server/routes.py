"""Routing: from the path of a request to its row in the endpoint table.

Clients resolve paths against base URLs of their users' making, so `//x`, `/api/x`,
`/any/base/x` and `/x/` all mean `x`. A path that could disguise another is refused.
"""

import re
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct

from byok.core.chat import Json
from byok.core.errors import BadRequest
from byok.core.routing import PREFIX, EndpointGroup, ServedBy
from byok.features import ROWS
from byok.protocols.augment.chat_request import model_id
from byok.protocols.augment.constant_replies import (
    CONTAINING,
    ENDING,
    SETTINGS_WRITES,
    ConstantReply,
)
from byok.protocols.augment.endpoints import (
    ENDPOINTS,
    NO_SETTINGS,
    Endpoint,
    Generate,
    Local,
    Refused,
)
from byok.server.openai_api import (
    ROUTES,
    ClientApi,
    Forward,
    ListModels,
    OpenAIRoute,
    client_api,
    find_route,
)
from byok.settings.sections import OfficialSettings


class AgentTools(Struct, frozen=True):
    """Code search over MCP, for any agent."""

    path: str = "/mcp"
    max_body: int = 4 * 2**20


Row: TypeAlias = Endpoint | OpenAIRoute | AgentTools

_MAX_UNREAD_BYTES, _MAX_RELAYED_BYTES = 2**20, 32 * 2**20  # bytes
_DISGUISES = re.compile(r"%2e|%00|%5c|%3b|%2f|[;\\\x00]", re.IGNORECASE)
# Paths of APIs that byok uses with upstreams only, or serves at another path.
_FOREIGN_PATHS = {
    "Ollama": re.compile(
        r"/api/(?:tags|generate|show|ps|version|pull|push|create|copy|delete|embed|"
        r"embeddings|blobs/[^/]*)/?\Z"
    ),
    "Gemini": re.compile(
        r"/v1(?:beta|alpha)\d*(?:/|\Z)|:(?:\w*[gG]enerateContent|countTokens|\w+Contents?)\Z"
    ),
    "Azure": re.compile(r"/openai/deployments/"),
    "OpenAI": re.compile(r"/chat/completions/?\Z"),
}
# Without its last letter, the path would end like the editor's own /completion.
_MISSPELLED_CHAT = re.compile(r"/v1/chat/completion/?\Z")
# Fields of questions in the editor's chat; Ollama's /api/chat has `messages` instead.
_CHAT_FIELDS = frozenset(
    ("message", "nodes", "request_nodes", "structured_request_nodes", "chat_history")
)
FEATURE_ENDPOINTS = tuple(
    Local(f"/byok/{row.name}", row.answers, for_owner=True)
    for row in ROWS
    if row.answers
)
_ROW_BY_PATH: dict[str, Row] = {
    row.path: row for row in (*ENDPOINTS, *FEATURE_ENDPOINTS, *ROUTES, AgentTools())
}


@lru_cache(256)  # clients request the same few paths again and again
def find_row(raw_path: str) -> tuple[Row, bool]:
    """Return the row of a path, and whether the path is known.

    The longest known suffix counts. An unknown path gets a constant reply that clients
    accept: an empty stream if the path ends in `-stream`, else `{}`.

    Raises:
        BadRequest: 404, the path holds encoded dots, NUL, `;` or a backslash, or
            belongs to an API that byok does not serve.
    """
    path = raw_path.partition("?")[0].partition("#")[0]
    foreign = next(
        (api for api, form in _FOREIGN_PATHS.items() if form.search(path)), ""
    )
    if (route := find_route(path)) and foreign != "Gemini":
        return route, True
    if _DISGUISES.search(path):
        raise BadRequest("There is no such path.", code="not_found", status=404)
    segments = [segment for segment in path.split("/") if segment]
    if ".." in segments or "." in segments:
        raise BadRequest("There is no such path.", code="not_found", status=404)
    if _MISSPELLED_CHAT.search(path):
        raise _not_served("OpenAI")
    for start in range(len(segments)):
        if row := _ROW_BY_PATH.get("/" + "/".join(segments[start:])):
            return row, True
    if foreign or client_api(path) is not ClientApi.EDITOR:
        raise _not_served(foreign)
    return _row_for_unknown("/" + "/".join(segments)), False


def check_body(row: Row, body: Json) -> None:
    """Check that a body fits its row: Ollama's chat has the same path as the editor's.

    Raises:
        BadRequest: 404, the body is a question in Ollama's API.
    """
    has_messages = isinstance(body.get("messages"), list)
    if row.path == "/chat" and has_messages and not _CHAT_FIELDS & body.keys():
        raise _not_served("Ollama")


def _not_served(api: str) -> BadRequest:
    served = ", ".join(route.path for route in ROUTES)
    return BadRequest(
        f"byok does not serve this path{f' of the {api} API' if api else ''}.",
        code="not_found",
        hint="Let the client use the API of OpenAI or Anthropic, with byok's address "
        "and /v1 as its base URL; `byok connect --help` lists the programs whose "
        f"settings byok writes. Served are: {served}.",
        status=404,
    )


def _row_for_unknown(path: str) -> ConstantReply | Refused:
    if any(part in path for part in SETTINGS_WRITES):
        return Refused(path, None, NO_SETTINGS, status=403)
    for prefix, body in CONTAINING:
        if prefix in path:
            return ConstantReply(path, (body,))
    for suffix, body in ENDING:
        if path.endswith(suffix):
            return ConstantReply(path, (body,))
    if path.endswith("-stream"):
        return ConstantReply(path, (), stream=True)
    return ConstantReply(path, ({},))


class Elsewhere(Struct, frozen=True):
    """A request for the official service, or of a group that is switched off.

    Constant replies are never switched off.
    """

    row: Endpoint
    group: EndpointGroup
    where: ServedBy


def max_body_bytes(official: OfficialSettings, row: Row) -> int:
    """Return the maximum size of a body, in bytes.

    A body that byok itself ignores may be larger if the official service answers it.
    """
    if isinstance(row, ListModels):
        return _MAX_UNREAD_BYTES
    if isinstance(row, (ConstantReply, Refused)):
        return _MAX_RELAYED_BYTES if row.group in official.groups else _MAX_UNREAD_BYTES
    return row.max_body


def find_elsewhere(
    settings: OfficialSettings, row: Row, body: Json
) -> Elsewhere | None:
    """Return where the settings send a request; None means that byok answers.

    A request for a model with byok's prefix is always byok's, even if its upstream is
    no longer in the settings: it was not meant for the official service.
    """
    if isinstance(row, (Forward, ListModels, AgentTools)) or not (group := row.group):
        return None
    where = settings.where(group)
    if where is ServedBy.LOCAL:
        return None
    if where is ServedBy.OFF:
        is_ours = isinstance(row, (ConstantReply, Refused))
    else:
        is_ours = isinstance(row, Generate) and model_id(body).startswith(PREFIX)
    return None if is_ours else Elsewhere(row, group, where)
