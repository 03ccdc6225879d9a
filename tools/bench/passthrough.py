"""The reference: aiohttp on both sides, bytes copied, nothing parsed."""

import sys
from collections.abc import AsyncIterator

import aiohttp
from aiohttp import web

from tools.bench.mock import run

_SESSION = web.AppKey("session", aiohttp.ClientSession)


def make_app(upstream: str) -> web.Application:
    """Make an application that passes every POST on to `upstream`."""

    async def session(app: web.Application) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(
            connector=connector, auto_decompress=False
        ) as http:
            app[_SESSION] = http
            yield

    async def passed(request: web.Request) -> web.StreamResponse:
        http, body = request.app[_SESSION], await request.read()
        kind = {"Content-Type": "application/json"}
        async with http.post(upstream + request.path, data=body, headers=kind) as got:
            response = web.StreamResponse(status=got.status)
            response.content_type = got.content_type
            await response.prepare(request)
            async for data in got.content.iter_any():
                await response.write(data)
            await response.write_eof()
            return response

    app = web.Application(client_max_size=2**30)
    app.cleanup_ctx.append(session)
    app.router.add_post("/{path:.*}", passed)
    return app


if __name__ == "__main__":
    run(make_app(sys.argv[1]))
