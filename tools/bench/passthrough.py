"""The pass-through to compare with: aiohttp on both sides copies bytes unparsed."""

import sys
from collections.abc import AsyncIterator

import aiohttp
from aiohttp import web

from tools.bench.mock import run

_SESSION = web.AppKey("session", aiohttp.ClientSession)


def make_app(upstream: str) -> web.Application:
    """Return an application that forwards every POST to `upstream`."""

    async def session(app: web.Application) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(
            connector=connector, auto_decompress=False
        ) as http:
            app[_SESSION] = http
            yield

    async def forward(request: web.Request) -> web.StreamResponse:
        http, body = request.app[_SESSION], await request.read()
        kind = {"Content-Type": "application/json"}
        async with http.post(
            upstream + request.path, data=body, headers=kind
        ) as answer:
            response = web.StreamResponse(status=answer.status)
            response.content_type = answer.content_type
            await response.prepare(request)
            async for data in answer.content.iter_any():
                await response.write(data)
            await response.write_eof()
            return response

    app = web.Application(client_max_size=2**30)
    app.cleanup_ctx.append(session)
    app.router.add_post("/{path:.*}", forward)
    return app


if __name__ == "__main__":
    run(make_app(sys.argv[1]))
