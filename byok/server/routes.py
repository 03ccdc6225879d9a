"""Routing: from the path of a request to its row in the endpoint table.

Clients resolve paths against bases of their own making, so `//x`, `/api/x`,
`/any/base/x` and `/x/` are `x`. What could hide another path is no path at all.
"""

import re
from typing import TypeAlias

from byok.augment.constant_replies import CONTAINING, ENDING, ConstantReply
from byok.augment.endpoints import ENDPOINTS, Endpoint
from byok.errors import BadRequest
from byok.server.openai_api import (
    ROUTES,
    ClientApi,
    OpenAIRoute,
    client_api,
    find_route,
)

Row: TypeAlias = Endpoint | OpenAIRoute

_TRICKS = re.compile(r"%2e|%00|%5c|%3b|%2f|[;\\\x00]", re.IGNORECASE)
_ROWS: dict[str, Row] = {row.path: row for row in (*ENDPOINTS, *ROUTES)}


def find_row(raw_path: str) -> tuple[Row, bool]:
    """Return the row of a path, and whether the path was known.

    The longest known suffix counts. An unknown path gets a constant that keeps
    clients calm: an empty stream if its name says stream, else `{}`.

    Raises:
        BadRequest: 404, the path holds encoded dots, NUL, `;` or a backslash, or is
            one of OpenAI's that byok does not have.
    """
    path = raw_path.partition("?")[0].partition("#")[0]
    if route := find_route(path):
        return route, True
    if _TRICKS.search(path):
        raise BadRequest("There is no such path.", code="not_found", status=404)
    segments = [segment for segment in path.split("/") if segment]
    if ".." in segments or "." in segments:
        raise BadRequest("There is no such path.", code="not_found", status=404)
    for start in range(len(segments)):
        if row := _ROWS.get("/" + "/".join(segments[start:])):
            return row, True
    if client_api(path) is not ClientApi.EDITOR:
        served = ", ".join(route.path for route in ROUTES)
        raise BadRequest(
            "byok does not serve this path.",
            code="not_found",
            hint=f"Served are: {served}.",
            status=404,
        )
    return _unknown("/" + "/".join(segments)), False


def _unknown(path: str) -> ConstantReply:
    for prefix, body in CONTAINING:
        if prefix in path:
            return ConstantReply(path, body)
    for suffix, body in ENDING:
        if path.endswith(suffix):
            return ConstantReply(path, body)
    if path.endswith("-stream"):
        return ConstantReply(path, None, stream=True)
    return ConstantReply(path, {})
