"""Routing: from the path of a request to its row in the endpoint table.

Clients resolve paths against bases of their own making, so `//x`, `/api/x`,
`/any/base/x` and `/x/` are `x`. What could hide another path is no path at all.
"""

import re
from typing import TypeAlias

from byok.augment.constant_replies import (
    CONTAINING,
    ENDING,
    SETTINGS_WRITES,
    ConstantReply,
)
from byok.augment.endpoints import ENDPOINTS, NO_SETTINGS, Endpoint, Local, Refused
from byok.chat import Json
from byok.errors import BadRequest
from byok.features import ROWS
from byok.server.openai_api import (
    ROUTES,
    ClientApi,
    OpenAIRoute,
    client_api,
    find_route,
)

Row: TypeAlias = Endpoint | OpenAIRoute

_TRICKS = re.compile(r"%2e|%00|%5c|%3b|%2f|[;\\\x00]", re.IGNORECASE)
# Paths of APIs that byok speaks to upstreams only, or serves at another place.
_FOREIGN = {
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
# Fields of a question of the editor's chat; Ollama's /api/chat has `messages` instead.
_CHAT_FIELDS = frozenset(
    ("message", "nodes", "request_nodes", "structured_request_nodes", "chat_history")
)
FEATURE_ENDPOINTS = tuple(
    Local(f"/byok/{row.name}", row.answers, own=True) for row in ROWS if row.answers
)
_ROWS: dict[str, Row] = {
    row.path: row for row in (*ENDPOINTS, *FEATURE_ENDPOINTS, *ROUTES)
}


def find_row(raw_path: str) -> tuple[Row, bool]:
    """Return the row of a path, and whether the path was known.

    The longest known suffix counts. An unknown path gets a constant that keeps
    clients calm: an empty stream if its name says stream, else `{}`.

    Raises:
        BadRequest: 404, the path holds encoded dots, NUL, `;` or a backslash, or is
            one of another API that byok does not have.
    """
    path = raw_path.partition("?")[0].partition("#")[0]
    foreign = next((api for api, form in _FOREIGN.items() if form.search(path)), "")
    if (route := find_route(path)) and foreign != "Gemini":
        return route, True
    if _TRICKS.search(path):
        raise BadRequest("There is no such path.", code="not_found", status=404)
    segments = [segment for segment in path.split("/") if segment]
    if ".." in segments or "." in segments:
        raise BadRequest("There is no such path.", code="not_found", status=404)
    for start in range(len(segments)):
        if row := _ROWS.get("/" + "/".join(segments[start:])):
            return row, True
    if foreign or client_api(path) is not ClientApi.EDITOR:
        raise _not_served(foreign)
    return _unknown("/" + "/".join(segments)), False


def check_body(row: Row, body: Json) -> None:
    """Check that a body is for its row; only Ollama's chat has a path of the editor's.

    Raises:
        BadRequest: 404, it is a question in Ollama's API.
    """
    asks = isinstance(body.get("messages"), list) and not _CHAT_FIELDS & body.keys()
    if row.path == "/chat" and asks:
        raise _not_served("Ollama")


def _not_served(api: str) -> BadRequest:
    served = ", ".join(route.path for route in ROUTES)
    return BadRequest(
        f"byok does not serve this path{f' of the {api} API' if api else ''}.",
        code="not_found",
        hint="Let the client use the API of OpenAI or Anthropic, with byok's address "
        f"and /v1 as its base URL. Served are: {served}.",
        status=404,
    )


def _unknown(path: str) -> ConstantReply | Refused:
    if any(part in path for part in SETTINGS_WRITES):
        return Refused(path, None, NO_SETTINGS, status=403)
    for prefix, body in CONTAINING:
        if prefix in path:
            return ConstantReply(path, body)
    for suffix, body in ENDING:
        if path.endswith(suffix):
            return ConstantReply(path, body)
    if path.endswith("-stream"):
        return ConstantReply(path, None, stream=True)
    return ConstantReply(path, {})
