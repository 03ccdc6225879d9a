"""A daemon inside the test whose only upstream is in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp

from byok.core.daemon.token import read_token
from byok.server.http.deadlines import Timing
from byok.server.run import listening
from byok.upstream.base import Upstream
from byok.upstream.router import Router
from byok.wiring.services import Services
from tests.fakes.daemon import QUICK, Editor, parts_of


@asynccontextmanager
async def daemon_with(
    upstream: Upstream, timing: Timing = QUICK
) -> AsyncIterator[Editor]:
    """Start a daemon that asks this upstream, whatever model is named."""
    settings, paths, redactor, open_services = parts_of(upstream="demo")

    @asynccontextmanager
    async def services_with() -> AsyncIterator[Services]:
        async with open_services() as services:
            router = Router({"demo": upstream}, services.catalog)
            yield replace(services, router=router)

    async with (
        listening(settings, paths, redactor, services_with, timing) as daemon,
        aiohttp.ClientSession() as http,
    ):
        yield Editor(daemon, daemon.services, read_token(paths.token), http)
