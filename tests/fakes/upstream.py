"""An OpenAI-compatible server that plays a script, on a free loopback port."""

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self

from aiohttp import web

DONE = b"data: [DONE]\n\n"


def event(value: Any) -> bytes:
    """Write one server-sent event."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def delta(finish: str | None = None, **fields: Any) -> bytes:
    """Write one chunk of choice 0."""
    return event({"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]})


def answer(*texts: str, finish: str = "stop") -> list[bytes]:
    """Script a whole streamed text answer."""
    return [*(delta(content=text) for text in texts), delta(finish=finish), DONE]


def tool_answer(name: str, arguments: str, call_id: str = "call_1") -> list[bytes]:
    """Script a streamed answer that calls one tool."""
    call = {
        "index": 0,
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }
    return [delta(tool_calls=[call]), delta(finish="tool_calls"), DONE]


@dataclass
class Script:
    """One answer: raw bytes with pauses, and how the connection ends.

    A float among the pieces is a pause in seconds, an event is waited for. `end` is
    "eof", "reset" (RST), or "hang" (stay open until the client leaves).
    """

    pieces: Iterable[bytes | float | asyncio.Event] = field(
        default_factory=lambda: answer("Hi.")
    )
    status: int = 200
    headers: dict[str, str] = field(
        default_factory=lambda: {"Content-Type": "text/event-stream"}
    )
    end: str = "eof"
    before_head: bool = False  # end before any byte


class LoopbackServer:
    """Serves its routes on a free loopback port while a block lasts.

    `path` is that of the API, which `url` ends with.
    """

    path = ""
    url = ""
    _host = "127.0.0.1"
    _tls: ssl.SSLContext | None = None

    def routes(self) -> list[web.RouteDef]:
        """Return what is served."""
        raise NotImplementedError

    def make_app(self) -> web.Application:
        """Return the application of the routes."""
        return web.Application(client_max_size=2**30)

    async def __aenter__(self) -> Self:
        app = self.make_app()
        app.add_routes(self.routes())
        self._runner = web.AppRunner(
            app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, 0, ssl_context=self._tls)
        await site.start()
        port = self._runner.addresses[0][1]
        name = f"[{self._host}]" if ":" in self._host else self._host
        self.url = f"http{'s' if self._tls else ''}://{name}:{port}{self.path}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()


class FakeUpstream(LoopbackServer):
    """Answers each chat request with the next script, the last one for ever."""

    path = "/v1"

    def __init__(
        self, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
    ) -> None:
        self._host = host
        self._tls = tls
        self.open = 0
        self.renew()

    def renew(self) -> None:
        """Forget every request and every script, as if it were new."""
        self.scripts: list[Script] = [Script()]
        self.reply: Callable[[dict[str, Any]], Script] | None = None  # by body
        self.requests: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.queries: list[str] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.list_headers: list[dict[str, str]] = []
        self.models: list[str] = ["fake-model"]
        self.models_delay = 0.0
        self.models_error = ""  # answered with 401; {key} is what came as the key
        self.hung_up = asyncio.Event()
        self.reached = asyncio.Event()
        self._played = 0

    def play(self, *scripts: Script | list[bytes]) -> None:
        """Set the scripts of the next requests."""
        self.scripts = [s if isinstance(s, Script) else Script(s) for s in scripts]
        self._played = 0

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/{path:.+}", self._chat),
            web.post("/{beside:.+}", self._chat),  # such as /infill
            web.get("/v1/models", self._list),
        ]

    async def _list(self, request: web.Request) -> web.Response:
        self.list_headers.append(dict(request.headers))
        self.queries.append(request.rel_url.raw_query_string)
        await asyncio.sleep(self.models_delay)
        if self.models_error:
            key = request.headers.get("Authorization", "").removeprefix("Bearer ")
            message = self.models_error.format(key=key)
            return web.json_response({"error": {"message": message}}, status=401)
        return web.json_response({"data": [{"id": name} for name in self.models]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(await request.json())
        beside = request.match_info.get("beside")
        self.paths.append(f"/{beside}" if beside else request.match_info["path"])
        self.queries.append(request.rel_url.raw_query_string)
        self.bodies.append(await request.read())
        self.headers.append(dict(request.headers))
        script = self.scripts[min(self._played, len(self.scripts) - 1)]
        if self.reply is not None:
            script = self.reply(self.requests[-1])
        self._played += 1
        self.reached.set()
        self.open += 1
        try:
            return await play(request, script)
        except (ConnectionResetError, asyncio.CancelledError):
            self.hung_up.set()
            raise
        finally:
            self.open -= 1


async def play(request: web.BaseRequest, script: Script) -> web.StreamResponse:
    """Give the answer of a script."""
    if script.before_head:
        _reset(request)
        return web.Response()
    out = web.StreamResponse(status=script.status, headers=script.headers)
    await out.prepare(request)
    for piece in script.pieces:
        if isinstance(piece, bytes):
            await out.write(piece)
        elif isinstance(piece, asyncio.Event):
            await piece.wait()
        else:
            await asyncio.sleep(piece)
    if script.end == "reset":
        await asyncio.sleep(0.05)
        _reset(request)
        return out
    while script.end == "hang":
        await asyncio.sleep(0.05)
    await out.write_eof()
    return out


def _reset(request: web.BaseRequest) -> None:
    assert request.transport is not None
    sock = request.transport.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    request.transport.abort()


def refusal(
    status: int, message: str = "No.", headers: dict[str, str] | None = None
) -> Script:
    body = json.dumps({"error": {"message": message}}).encode()
    return Script(
        [body], status, {"Content-Type": "application/json", **(headers or {})}
    )


@cache
def dead_url() -> str:
    """An address where nobody listens, the same for a whole run."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    sock.detach()  # it stays bound: nobody else gets the port
    return f"http://127.0.0.1:{port}/v1"
