"""An HTTP server on bound sockets, until a block ends."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from socket import socket

from aiohttp.web import ServerRunner, SockSite

from byok.core.daemon.sockets import BACKLOG
from byok.server.http.protocol import HttpServer

# The loop accepts so many before it reads again: a request that came is read before a
# flood of connections behind it takes its place. Others wait in the system's queue.
_AT_ONCE = 8


@asynccontextmanager
async def serve_http(
    server: HttpServer, sockets: Sequence[socket], shutdown_seconds: float
) -> AsyncIterator[list[SockSite]]:
    """Accept connections; give the sites, which can be stopped before the end.

    At the end, open connections have `shutdown_seconds` before they are closed.
    """
    runner = ServerRunner(server, shutdown_timeout=shutdown_seconds)
    await runner.setup()
    try:
        sites = [SockSite(runner, sock, backlog=_AT_ONCE) for sock in sockets]
        for site, sock in zip(sites, sockets, strict=True):
            await site.start()
            sock.listen(BACKLOG)
        yield sites
    finally:
        await runner.cleanup()
