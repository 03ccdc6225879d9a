"""Models on the page: their abilities and the sources of these; probe and update."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from msgspec import to_builtins

from byok.core.chat import Json
from byok.core.errors import NotReady, UpstreamError
from byok.core.routing import split_id
from byok.dialects.fim_templates import template_of
from byok.dialects.known_models import LISTS
from byok.server.daemon_endpoints import known_catalog
from byok.server.dashboard.endpoint import (
    PageHandler,
    PageRequest,
    bad_field,
    read_flag,
    read_text,
)
from byok.upstream.client import HttpUpstream
from byok.upstream.model_facts import Profiles
from byok.upstream.model_table import fetch_lists, keep_lists
from byok.upstream.transport import Route
from byok.wiring.services import Services
from byok.wiring.upstreams import open_probed

_MAX_ID_CHARS = 600


class ModelsApi:
    """Answers about models, and probes one at a time."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._probing = asyncio.Lock()
        self._updating = asyncio.Lock()
        self.handlers: Mapping[str, PageHandler] = {
            "models": self.list_models,
            "model-probe": self.probe,
            "models-update": self.update,
        }

    async def list_models(self, request: PageRequest) -> Json:
        """Return the catalog, with abilities, uses and last probe of each model."""
        catalog = known_catalog(self._services)
        profiles = self._profiles
        rows = await asyncio.to_thread(
            lambda: [
                self._describe(row, catalog, profiles) for row in catalog["models"]
            ]
        )
        return {**catalog, "models": rows}

    async def probe(self, request: PageRequest) -> Json:
        """Return what a probe of a model would send and cost; with `write` probe it.

        Without `write` nothing is sent. If the user leaves the page, the probe ends.

        Raises:
            NotReady: another model is being probed.
        """
        name, model = self._read_model(request)
        if not read_flag(request.body, "write"):
            return self._plan(name, model)
        if self._probing.locked():
            raise NotReady("Another model is being probed.", hint="Wait for its end.")
        async with self._probing:
            return await self._probe(name, model)

    async def update(self, request: PageRequest) -> Json:
        """Return which public lists would be fetched; with `write` fetch and use them.

        No data of the user is sent.
        """
        if not read_flag(request.body, "write"):
            return {"lists": [public.url for public in LISTS]}
        network = self._services.settings.network
        async with self._updating:
            fetched = await fetch_lists(Route(network.proxy, network.ca_file))
            path = self._services.paths.known_models
            stored = await asyncio.to_thread(
                keep_lists, fetched.contents, date.today(), path
            )
        return {
            "models": sum(map(len, stored.table.rows.values())),
            "new_count": len(stored.new),
            "changed_count": len(stored.changed),
            "failures": fetched.failures,
        }

    @property
    def _profiles(self) -> Profiles:
        return self._services.factory.shared.profiles

    def _describe(self, row: Json, catalog: Json, profiles: Profiles) -> Json:
        name, model = row["upstream"], row["model"]
        upstream = self._services.upstreams.get(name)
        probed = None
        if isinstance(upstream, HttpUpstream):
            probed = profiles.find(upstream.spec.key, model).report.get("date")
        return {
            **row,
            "can": [*_abilities(model, row["facts"])],
            "used": [*_uses(catalog, row["id"], self._services)],
            "probed": probed if isinstance(probed, str) else None,
        }

    def _read_model(self, request: PageRequest) -> tuple[str, str]:
        parts = split_id(read_text(request.body, "model", max_chars=_MAX_ID_CHARS))
        if not parts or parts[0] not in self._services.selection.upstreams:
            raise bad_field("model", "the id of a model of an upstream")
        return parts

    def _plan(self, name: str, model: str) -> Json:
        from byok.upstream.probe.cases import CASES, estimate_cost

        cost: Json = to_builtins(
            estimate_cost(CASES, self._services.price_of(name, model))
        )
        return cost

    async def _probe(self, name: str, model: str) -> Json:
        """Probe a model, and store the results in its profile.

        Raises:
            ByokError: the model does not answer the first question.
        """
        from byok.upstream.probe.asking import Prober
        from byok.upstream.probe.cases import CASES, run_probe
        from byok.upstream.probe.report import keep_results

        services = self._services
        section = services.selection.upstreams[name]
        async with open_probed(
            name, section, services.settings, services.ladder, services.redactor
        ) as upstream:
            with contextlib.suppress(UpstreamError):  # not all have a list
                await upstream.models()
            prober = Prober(upstream, model)
            results = await run_probe(prober, CASES, lambda result: None)
            await asyncio.to_thread(
                keep_results,
                self._profiles,
                upstream.spec.key,
                prober.facts,
                results,
                dialect=prober.dialect,
            )
        return {"results": [{**to_builtins(row), "facts": None} for row in results]}


def _abilities(model: str, facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the known abilities of a model."""
    names = {"tools": "tools", "images": "images", "thinking": "reasoning"}
    yield from (label for name, label in names.items() if facts.get(name))
    if template_of(model) is not None:
        yield "fill"
    if facts.get("chats") is False and "embed" in model.casefold():
        yield "vectors"


def _uses(catalog: Json, model: str, services: Services) -> Iterator[str]:
    """Yield the jobs that a model does for clients that name no model."""
    if model == catalog["default"]:
        yield "chat"
    yield from (job for job, name in catalog["jobs"].items() if name == model)
    name = services.settings.embeddings
    if name.on and model == f"byok:{name.upstream}:{name.model}":
        yield "vectors"
