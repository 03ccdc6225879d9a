"""A Zoekt server on loopback: judges what it is asked, answers in Zoekt's shapes.

The shapes are those of `zoekt-webserver -rpc`, as recorded from one. What byok may send
is written down here a second time: another header, option or form of a query is a
violation, as is anything but letters and digits in a term.
"""

import asyncio
import base64
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from aiohttp import web

from tests.fakes.upstream import LoopbackServer

_ATOM = r'(?:"[^\W_]{3,64}"|file:[A-Za-z0-9_](?:[\w-]|\[\.\])*)'
_QUERY = re.compile(rf"case:no \({_ATOM}(?: or {_ATOM}){{0,12}}\)")
_OPTIONS = {
    "ChunkMatches": bool, "UseBM25Scoring": bool, "NumContextLines": int,
    "MaxDocDisplayCount": int, "MaxMatchDisplayCount": int, "ShardMaxMatchCount": int,
    "TotalMaxMatchCount": int, "MaxWallTime": int,
}  # fmt: skip
_HEADERS = {
    "host", "accept", "accept-encoding", "content-type", "content-length", "user-agent",
}  # fmt: skip
REVISION = "c650fb45204635f07910948d5fc59a8c551ffdda"
Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]


def found(
    repository: str, path: str, text: str, *, line: int = 1, **fields: Any
) -> dict[str, Any]:
    """Return a file of an answer, with one piece of its text that begins at a line."""
    start = {"ByteOffset": 0, "LineNumber": line, "Column": 1}
    chunk = {
        "DebugScore": "",
        "Content": base64.b64encode(text.encode()).decode(),
        "Ranges": [{"Start": start, "End": {**start, "Column": 5}}],
        "SymbolInfo": None,
        "FileName": False,
        "ContentStart": start,
        "Score": 1.6,
        "BestLineMatch": line,
    }
    return {
        "FileName": path,
        "Repository": repository,
        "Version": REVISION,
        "Language": "Python",
        "Branches": ["HEAD"],
        "ChunkMatches": [chunk],
        "Checksum": hashlib.sha1(f"{repository}{path}{text}".encode()).hexdigest(),
        "Score": 6.7,
        **fields,
    }


def answer(*files: Any) -> dict[str, Any]:
    """Return an answer of the server."""
    count = {"FileCount": len(files), "MatchCount": len(files), "Duration": 382198}
    return {"Result": {**count, "Files": [*files] or None, "RepoURLs": {}}}


class ZoektServer(LoopbackServer):
    """A running server; `files` are found by every question, `headers` are allowed.

    `asked` are the queries, `received` what came whole, as bytes with its headers.
    """

    def __init__(self, *files: Any) -> None:
        self.files = files
        self.token = ""
        self.headers: Mapping[str, str] = {}
        self.fault: Fault | None = None
        self.asked: list[str] = []
        self.received: list[bytes] = []
        self.violations: list[str] = []

    def routes(self) -> list[web.RouteDef]:
        return [web.route("*", "/{path:.*}", self._serve)]

    async def __aexit__(self, *_: object) -> None:
        await super().__aexit__()
        assert not self.violations

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        lines = [f"{name}: {value}" for name, value in request.headers.items()]
        self.received.append("\n".join([request.path_qs, *lines]).encode() + body)
        if self.token and request.headers.get("Authorization") != self.token:
            return web.json_response({"Error": "who are you?"}, status=401)
        self._judge(request, body)
        if self.fault is not None:
            return await self.fault(request)
        return web.json_response(answer(*self.files))

    def _judge(self, request: web.Request, body: bytes) -> None:
        if (request.method, request.path_qs) != ("POST", "/api/search"):
            self.violations.append(f"{request.method} {request.path_qs}")
            return
        own = {"authorization"} if self.token else set()
        allowed = _HEADERS | own | {name.lower() for name in self.headers}
        sent = {name.lower(): value for name, value in request.headers.items()}
        self.violations += sorted(sent.keys() - allowed)
        self.violations += [
            name for name, v in self.headers.items() if sent.get(name.lower()) != v
        ]
        match orjson.loads(body):
            case {"Q": str() as query, "Opts": dict() as options, **other} if not other:
                self.asked.append(query)
                if not _QUERY.fullmatch(query):
                    self.violations.append(query)
                self.violations += [
                    name
                    for name, value in options.items()
                    if type(value) is not _OPTIONS.get(name)
                ]
            case value:
                self.violations.append(repr(value))


class Token:
    """Stands for the user's keyring."""

    def __init__(self, value: str = "") -> None:
        self.value = value
        self.looked_up = 0
        self.forgotten = False
        self.ready = asyncio.Event()
        self.ready.set()

    async def get(self) -> str:
        self.looked_up += 1
        await self.ready.wait()
        return self.value

    def forget(self) -> None:
        self.forgotten = True
