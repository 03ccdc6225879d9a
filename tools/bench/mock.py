"""A mock upstream of OpenAI's dialect; each request specifies its answer.

As a program it prints its address. `GET /stats` returns the number of open streams.
"""

import asyncio
import os
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator

import orjson
from aiohttp import web

from tools.bench.spec import Spec, arguments, record

_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
_FACTS = b'"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m"'


class Mock:
    """Answers chat requests by their spec, which may include a fault."""

    def __init__(self) -> None:
        self.open = 0
        self.asked = 0
        self.left = 0  # requests whose client hung up
        self._attempts: Counter[str] = Counter()

    def app(self) -> web.Application:
        """Make the web application."""
        app = web.Application(client_max_size=2**30)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/stats", self._stats)
        return app

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "mock"}]})

    async def _stats(self, request: web.Request) -> web.Response:
        assert request.protocol._manager is not None
        connections = len(request.protocol._manager.connections) - 1
        stats = {"open": self.open, "asked": self.asked, "left": self.left}
        return web.json_response({**stats, "connections": connections})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        self.open += 1
        try:
            spec = Spec.from_request(await request.read())
            return await self._answer(request, spec, self._fault(spec))
        except (asyncio.CancelledError, ConnectionError):
            self.left += 1
            raise
        finally:
            self.open -= 1

    def _fault(self, spec: Spec) -> str:
        """Return the fault of this attempt, "" for none."""
        if spec.fault == "none":
            return ""
        self._attempts[spec.stream] += 1
        if self._attempts[spec.stream] <= spec.times:
            return spec.fault
        del self._attempts[spec.stream]
        return ""

    async def _answer(
        self, request: web.Request, spec: Spec, fault: str
    ) -> web.StreamResponse:
        if fault.isdecimal():
            body = {"error": {"message": "as asked", "type": "mock"}}
            headers = {"Retry-After": "0"}
            return web.json_response(body, status=int(fault), headers=headers)
        if fault == "refuse":
            _reset(request)
            return web.Response()
        response = web.StreamResponse(headers=_HEADERS)
        await response.prepare(request)
        start = asyncio.get_running_loop().time()
        for turn, data in enumerate(Writes(spec)):
            await _until(start + turn * spec.pause)
            if fault and turn * spec.per_write >= spec.at:
                if not await _strike(fault, request, spec):
                    return response
                fault = ""
                start = asyncio.get_running_loop().time() - turn * spec.pause
            await response.write(data())
        await response.write_eof()
        return response


async def _until(moment: float) -> None:
    wait = moment - asyncio.get_running_loop().time()
    if wait > 0:
        await asyncio.sleep(wait)


async def _strike(fault: str, request: web.Request, spec: Spec) -> bool:
    """Cause a fault in the middle of a stream; return whether the stream continues."""
    match fault:
        case "stall":
            await asyncio.sleep(spec.stall)
            return True
        case "silence":
            await asyncio.sleep(600)
        case "reset":
            await asyncio.sleep(0.05)  # let the bytes written before arrive
            _reset(request)
        case "cut":
            assert request.transport is not None
            request.transport.close()
        case _:
            raise ValueError(fault)
    return False


class Writes:
    """The writes of an answer, each built when it is sent, as it has that time."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec

    def __iter__(self) -> "Iterator[_Write]":
        spec = self._spec
        for first in range(0, spec.chunks, spec.per_write):
            last = min(first + spec.per_write, spec.chunks)
            yield _Write(spec, range(first, last))
        fragments = list(_fragments(spec))
        for first in range(0, len(fragments), spec.per_write):
            yield _Write(spec, fragments=fragments[first : first + spec.per_write])
        reason = b'"tool_calls"' if spec.calls else b'"stop"'
        yield _Write(spec, fragments=[_event(b"{}", reason), b"data: [DONE]\n\n"])


class _Write:
    def __init__(
        self, spec: Spec, texts: range = range(0), fragments: list[bytes] | None = None
    ) -> None:
        self._spec, self._texts, self._fragments = spec, texts, fragments or []

    def __call__(self) -> bytes:
        now = time.monotonic_ns()
        texts = (record(self._spec.stream, n, now) for n in self._texts)
        deltas = (b'{"content":' + orjson.dumps(text) + b"}" for text in texts)
        return b"".join([*map(_event, deltas), *self._fragments])


def _fragments(spec: Spec) -> Iterator[bytes]:
    """Write parallel tool calls with interleaved fragments."""
    if not spec.calls:
        return
    for call in range(spec.calls):
        start = {"index": call, "id": f"call_{spec.stream}_{call}", "type": "function"}
        start["function"] = {"name": "write", "arguments": ""}
        yield _event(orjson.dumps({"tool_calls": [start]}))
    cut = [arguments(spec.stream, call, spec.fragments) for call in range(spec.calls)]
    for together in zip(*cut, strict=True):
        for call, piece in enumerate(together):
            part = {"index": call, "function": {"arguments": piece}}
            yield _event(orjson.dumps({"tool_calls": [part]}))


def _event(delta: bytes, reason: bytes = b"null") -> bytes:
    choice = b'{"index":0,"delta":' + delta + b',"finish_reason":' + reason + b"}"
    return b"data: {" + _FACTS + b',"choices":[' + choice + b"]}\n\n"


def _reset(request: web.Request) -> None:
    assert request.transport is not None
    sock = request.transport.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    request.transport.abort()


async def serve(app: web.Application, port: int = 0) -> None:
    """Serve on a loopback port, print the address, run until killed."""
    runner = web.AppRunner(
        app, handler_cancellation=True, access_log=None, keepalive_timeout=600
    )
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    parent = os.getppid()
    while os.getppid() == parent:  # end with the parent, even if that is killed
        await asyncio.sleep(1)


def run(app: web.Application, port: int = 0) -> None:
    """Run `serve` on uvloop if it is installed, as byok does."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(app, port))
    else:
        uvloop.run(serve(app, port))


if __name__ == "__main__":
    run(Mock().app(), int(sys.argv[1]))
