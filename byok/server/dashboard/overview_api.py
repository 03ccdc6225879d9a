"""What the overview asks for: the daemon, its upstreams, models and keys.

Each block of the panel asks for itself, because some of it takes seconds: a list of
models comes from an upstream, a key from a keyring that may open a dialog. Opening the
panel asks no upstream anything; `upstreams` with `anew` begins to, and is asked again
for how it goes.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping

from byok.chat import Json
from byok.config import UpstreamSettings
from byok.dialects.presets import preset_of
from byok.routing import Service
from byok.server.catalog_report import known_catalog
from byok.server.control import Control
from byok.server.dashboard.endpoint import PageHandler, PageRequest
from byok.server.dashboard.fields import read_flag
from byok.server.handlers import LocalHandler
from byok.upstream.base import Upstream
from byok.wiring.apis import base_url_of
from byok.wiring.services import Services


def make_overview_handlers(
    local: Mapping[str, LocalHandler], services: Services, control: Control
) -> Mapping[str, PageHandler]:
    """Return what answers each name of the overview."""

    async def state(asked: PageRequest) -> Json:
        del asked
        return {
            **await local[Service.DAEMON]({}),
            "pid": os.getpid(),
            "since": control.since,
            "seconds": max(0.0, time.time() - control.since),
            "official": await local[Service.OFFICIAL]({}),
        }

    async def upstreams(asked: PageRequest) -> Json:
        if read_flag(asked.body, "anew"):
            services.catalog.refresh(anew=True)
        sections = services.selection.upstreams
        rows = [
            _describe(services, services.upstreams[name], section)
            for name, section in sections.items()
        ]
        return {"upstreams": rows}

    async def catalog(asked: PageRequest) -> Json:
        del asked
        return known_catalog(services)

    return {
        "state": state,
        "upstreams": upstreams,
        "catalog": catalog,
        "keys": _one_at_a_time(local[Service.KEYS]),
    }


def _describe(
    services: Services, upstream: Upstream, section: UpstreamSettings
) -> Json:
    """Return what is known of one upstream; nothing is asked."""
    name, catalog = upstream.name, services.catalog
    listed = catalog.state_of(name)
    return {
        "name": name,
        "type": section.type,
        "dialect": section.dialect or preset_of(section.type).dialect,
        "base_url": services.redactor(base_url_of(section)),
        "default": catalog.default_of(name),
        "models": len(catalog.models_of(name)),
        "asking": listed.asking,
        "age": listed.age,
        "failure": services.redactor(listed.failure),
        "rest": upstream.rest_seconds,
    }


def _one_at_a_time(
    look: LocalHandler,
) -> Callable[[PageRequest], Awaitable[Json]]:
    """Let all who ask while keys are looked up share one answer.

    Each look may hold a thread for seconds, and open a dialog.
    """
    running: list[asyncio.Task[Json]] = []

    async def answer(asked: PageRequest) -> Json:
        del asked
        if not running or running[0].done():
            running[:] = [asyncio.ensure_future(look({}))]
        return await asyncio.shield(running[0])

    return answer
