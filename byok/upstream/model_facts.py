"""Facts about an upstream's models, from all sources: known at once, cached.

The server is asked about a model that it has loaded; all other sources need no request.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from byok.core.bounded import BoundedMap
from byok.core.errors import ByokError, ContextLengthExceeded, UpstreamError
from byok.core.wire.json_body import parse_json, write_json
from byok.dialects.base import Probe
from byok.dialects.families import family_facts
from byok.dialects.model_facts import (
    FREE,
    FactSource,
    ModelFacts,
    SourcedFacts,
    combine_facts,
)
from byok.upstream.http_call import read_limited
from byok.upstream.http_sender import Sender
from byok.upstream.model_table import known_table
from byok.upstream.profiles import Profiles
from byok.upstream.spec import Api, UpstreamSpec

# Sources of model facts that need no request: settings, profiles, names, the table.


# What a source knows about a model, by its id.
Lookup: TypeAlias = tuple[FactSource, Callable[[str], ModelFacts]]


def fact_sources(spec: UpstreamSpec, profiles: Profiles | None) -> tuple[Lookup, ...]:
    """Return the sources for the models of one upstream."""

    def set_by_user(model: str) -> ModelFacts:
        own, common = (spec.facts.get(name) for name in (model, ""))
        layers = [(FactSource.USER, facts) for facts in (own, common) if facts]
        return combine_facts(model, layers).facts

    found: tuple[Lookup, ...] = (
        (FactSource.USER, set_by_user),
        (FactSource.FAMILY, family_facts),
        (FactSource.TABLE, lambda model: known_table().facts(spec.vendor, model)),
    )
    if spec.is_local:
        # A server here may pass questions on, so whoever names a price counts more.
        free = partial(ModelFacts, price=FREE)
        found = (*found, (FactSource.LOCAL, free))
    if profiles is None:
        return found
    key = spec.key
    return (*found, (FactSource.PROBE, lambda model: profiles.facts(key, model)))


_log = logging.getLogger(__name__)
_MAX_BYTES = 2**20
_MAX_MODELS = 1000
_SECONDS, _FRESH_SECONDS = 1.0, 60.0


class KnownModels:
    """What is known about the models of one upstream.

    A server is asked about a model at most once a minute: a local one may load the
    model again with another context window. What the other sources know is asked for
    that often as well, because the probe writes its profiles in another process.
    """

    def __init__(
        self,
        sender: Sender,
        api: Api,
        sources: Iterable[Lookup] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sender = sender
        self._api = api
        self._sources = tuple(sources)
        self._clock = clock
        self._listed: dict[str, ModelFacts] = {}
        # Until when it holds; a client may name any number of models.
        self._probed = BoundedMap[str, tuple[ModelFacts, float]](_MAX_MODELS)
        self._refused = BoundedMap[str, ModelFacts](_MAX_MODELS)
        self._combined = BoundedMap[str, tuple[SourcedFacts, float]](_MAX_MODELS)
        self._assumed: dict[str, Any] = {}

    def set_listed(self, models: Iterable[ModelFacts]) -> None:
        """Store the facts of the model list."""
        self._listed = {model.id: model for model in models}
        self._combined.clear()

    def listed_facts(self) -> Mapping[str, ModelFacts]:
        """Return the facts of the model list, by the models' names."""
        return self._listed

    def learn(self, facts: ModelFacts) -> None:
        """Store what refusals taught about a model, if anything; the newest counts."""
        if not facts.known_fields():
            return
        before = self._refused.get(facts.id) or ModelFacts(facts.id)
        layers = [(FactSource.REFUSAL, facts), (FactSource.REFUSAL, before)]
        known = combine_facts(facts.id, layers).facts
        if known != before:
            self._refused[facts.id] = known
            self._combined.pop(facts.id)

    def learn_from(self, error: UpstreamError, model: str) -> None:
        """Learn the window that an error names, unless a local server may change it."""
        window = error.window if isinstance(error, ContextLengthExceeded) else None
        if window and not self._api.dialect.probes(model):
            self.learn(ModelFacts(model, window=window))

    def assume(self, **values: Any) -> None:
        """Let facts have these values from now on, whatever is known: for trials."""
        self._assumed = values

    def facts(self, model: str) -> ModelFacts:
        """Return what is known about a model so far, for a request to it.

        That a model sounds like one without tools or pictures is no reason to leave
        them out: if it has none, it refuses them once.
        """
        known = self.sourced_facts(model)
        facts = known.facts
        guessed = {
            name: None
            for name in ("tools", "images")
            if getattr(facts, name) is False
            and known.sources[name] is FactSource.FAMILY
        }
        changed = guessed | self._assumed
        return replace(facts, **changed) if changed else facts

    def sourced_facts(self, model: str) -> SourcedFacts:
        """Return what is known about a model, and where each fact is known from."""
        now = self._clock()
        combined, until = self._combined.get(model) or (None, 0.0)
        if combined is None or now >= until:
            combined = self._combine(model)
            self._combined[model] = (combined, now + _FRESH_SECONDS)
        return combined

    def _combine(self, model: str) -> SourcedFacts:
        layers = [(source, look_up(model)) for source, look_up in self._sources]
        if refused := self._refused.get(model):
            layers.append((FactSource.REFUSAL, refused))
        if listed := self._listed.get(model):
            layers.append((FactSource.SERVER, listed))
        if probed := self._probed.get(model):
            layers.append((FactSource.LOADED, probed[0]))
        return combine_facts(model, layers)

    async def window(self, model: str) -> int:
        """Return the context window of a model in tokens, 0 if it is unknown."""
        await self.ask(model)
        return self.facts(model).window

    async def ask(self, model: str) -> None:
        """Ask the server about a model, where its dialect knows how."""
        now = asyncio.get_running_loop().time()
        _, until = self._probed.get(model) or (None, now)
        probes = self._api.dialect.probes(model)
        if now < until or not probes:
            return
        answers = await asyncio.gather(*(self._probe(model, p) for p in probes))
        layers = [(FactSource.LOADED, facts) for facts, _ in answers]
        facts = combine_facts(model, layers).facts
        # Without the window of a loaded model the next question may find it loaded.
        is_fresh = facts.window or any(failed for _, failed in answers)
        self._combined.pop(model)
        self._probed[model] = (facts, now + (_FRESH_SECONDS if is_fresh else 0.0))

    async def _probe(self, model: str, probe: Probe) -> tuple[ModelFacts, bool]:
        """Return the facts of one answer, and whether there was none."""
        content = None if probe.body is None else write_json(probe.body)
        asked = self._sender.open(self._api, probe.path, content)
        try:
            async with asyncio.timeout(_SECONDS), asked as response:
                body = parse_json(await read_limited(response, _MAX_BYTES))
        except (ByokError, TimeoutError, ValueError, RecursionError) as error:
            _log.debug("nothing is learned of %.80s: %s", model, error)
            return ModelFacts(model), True
        return self._api.dialect.read_probe(body, model), False
