"""Models on the page: what each can do and whence that is known; probe and update."""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from msgspec import to_builtins

from byok.core.chat import Json
from byok.core.errors import NotReady, UpstreamError
from byok.core.routing import split_id
from byok.dialects.fim_templates import template_of
from byok.dialects.known_models import LISTS
from byok.dialects.model_facts import write_facts
from byok.dialects.presets import preset_of
from byok.server.daemon_endpoints import known_catalog
from byok.server.dashboard.endpoint import (
    PageHandler,
    PageRequest,
    bad_field,
    read_flag,
    read_text,
)
from byok.settings import UpstreamSettings
from byok.upstream.client import HttpUpstream
from byok.upstream.model_facts import Profiles
from byok.upstream.model_table import fetch_lists, keep_lists
from byok.upstream.transport import Route
from byok.wiring.services import Services
from byok.wiring.upstreams import open_probed

_LONGEST_ID = 600
_MOST_CHANGES = 50


class ModelsApi:
    """Answers about models; one at a time is probed."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._probing = _Probing()
        self._updating = asyncio.Lock()
        self.handlers: Mapping[str, PageHandler] = {
            "models": self.list_models,
            "model-probe": self.probe,
            "models-update": self.update,
        }

    async def list_models(self, asked: PageRequest) -> Json:
        """Return the catalog, with what each model can do, does, and its last probe."""
        catalog = known_catalog(self._services)
        profiles = self._profiles
        rows = await asyncio.to_thread(
            lambda: [
                self._describe(row, catalog, profiles) for row in catalog["models"]
            ]
        )
        return {**catalog, "models": rows, "probing": self._probing.progress}

    async def probe(self, asked: PageRequest) -> Json:
        """Tell what a probe of a model sends and costs; with `write` do it.

        Until then nothing is sent. If the page is left, the probe ends.
        """
        name, model = self._read_model(asked)
        if not read_flag(asked.body, "write"):
            return self._plan(name, model)
        section = self._services.selection.upstreams[name]
        return await self._probing.run(self._services, name, section, model)

    async def update(self, asked: PageRequest) -> Json:
        """Tell which public lists would be fetched; with `write` do it, and use them.

        Nothing of the user's is sent.
        """
        if not read_flag(asked.body, "write"):
            table = known_catalog(self._services)["table"]
            return {"lists": [public.url for public in LISTS], "table": table}
        network = self._services.settings.network
        async with self._updating:
            had = await fetch_lists(Route(network.proxy, network.ca_file))
            path = self._services.paths.known_models
            done = await asyncio.to_thread(keep_lists, had.contents, date.today(), path)
        return {
            "models": sum(map(len, done.table.rows.values())),
            "new": done.new[:_MOST_CHANGES],
            "new_count": len(done.new),
            "changed": done.changed[:_MOST_CHANGES],
            "changed_count": len(done.changed),
            "doubts": len(done.doubts),
            "failures": had.failures,
            "table": known_catalog(self._services)["table"],
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

    def _read_model(self, asked: PageRequest) -> tuple[str, str]:
        parts = split_id(read_text(asked.body, "model", longest=_LONGEST_ID))
        if not parts or parts[0] not in self._services.selection.upstreams:
            raise bad_field("model", "the id of a model of an upstream")
        return parts

    def _plan(self, name: str, model: str) -> Json:
        from byok.upstream.probe.cases import CASES, estimate_cost

        price = self._services.price_of(name, model)
        known = self._services.catalog.facts_of(name, model)
        section = self._services.selection.upstreams[name]
        usual = section.dialect or preset_of(section.type).dialect
        source = known.sources.get("price")
        return {
            "model": f"byok:{name}:{model}",
            "dialect": known.facts.dialect or usual,
            "cases": [case.name for case in CASES],
            **to_builtins(estimate_cost(CASES, price)),
            "source": source.value if source else None,
            "probing": self._probing.progress,
        }


class _Probing:
    """The one probe that runs, if any."""

    def __init__(self) -> None:
        self.progress: Json | None = None

    async def run(
        self, services: Services, name: str, section: UpstreamSettings, model: str
    ) -> Json:
        """Probe a model and keep what is found.

        Raises:
            NotReady: another one is being probed.
            ByokError: the model does not answer the first question.
        """
        from byok.upstream.probe.asking import Prober
        from byok.upstream.probe.cases import CASES, run_probe
        from byok.upstream.probe.report import ProbeResult, keep_results

        if self.progress is not None:
            raise NotReady("Another model is being probed.", hint="Wait for its end.")
        done = {"model": f"byok:{name}:{model}", "done": 0, "total": len(CASES)}
        self.progress = {**done, "since": time.time()}

        def count(result: ProbeResult) -> None:
            if self.progress is not None:
                passed = self.progress["done"] + 1
                self.progress = {**self.progress, "done": passed}

        try:
            async with open_probed(
                name, section, services.settings, services.ladder, services.redactor
            ) as upstream:
                with contextlib.suppress(UpstreamError):  # not all have a list
                    await upstream.models()
                prober = Prober(upstream, model)
                results = await run_probe(prober, CASES, count)
                profile = await asyncio.to_thread(
                    keep_results,
                    services.factory.shared.profiles,
                    upstream.spec.key,
                    prober.facts,
                    results,
                    dialect=prober.dialect,
                )
        finally:
            self.progress = None
        rows = [{**to_builtins(result), "facts": None} for result in results]
        facts, day = write_facts(profile.facts), profile.report["date"]
        return {"results": rows, "facts": facts, "date": day}


def _abilities(model: str, facts: Mapping[str, Any]) -> Iterator[str]:
    """Give what a model can do, as far as that is known."""
    names = {"tools": "tools", "images": "images", "thinking": "reasoning"}
    yield from (shown for name, shown in names.items() if facts.get(name))
    if template_of(model) is not None:
        yield "fill"
    if facts.get("chats") is False and "embed" in model.casefold():
        yield "vectors"


def _uses(catalog: Json, model: str, services: Services) -> Iterator[str]:
    """Give the jobs that a model does where a client names none."""
    if model == catalog["default"]:
        yield "chat"
    yield from (job for job, chosen in catalog["jobs"].items() if chosen == model)
    chosen = services.settings.embeddings
    if chosen.on and model == f"byok:{chosen.upstream}:{chosen.model}":
        yield "vectors"
