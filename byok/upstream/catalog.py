"""The catalog of models: those in the settings, and those that upstreams list.

Reading never waits. Lists are fetched in the background and cached in a file, so that
they are known right after a start.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from byok.dialects.default_models import choose_chat_model, choose_job_model
from byok.dialects.model_facts import FREE, ModelFacts, Price, SourcedFacts
from byok.errors import ConfigError, NotReady, UpstreamError
from byok.model_ids import ListedModel
from byok.purposes import Purpose
from byok.upstream.base import Upstream
from byok.upstream.list_cache import read_lists, remember_lists
from byok.upstream.model_facts import KnownModels
from byok.upstream.model_table import known_table

_log = logging.getLogger(__name__)
_FRESH_SECONDS = 300.0
_MAX_LISTED = 500


@dataclass(slots=True)
class _Entry:
    upstream: Upstream
    by_hand: tuple[str, ...]
    chosen: str  # the user's default model of this upstream, may be ""
    key: str  # in the file
    vendor: str
    known: KnownModels | None
    found: list[ModelFacts] = field(default_factory=list)
    models: list[str] = field(default_factory=list)  # default, by hand, found
    default: str = ""
    fetched: float = float("-inf")
    failure: str = ""
    fetching: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.learn([])

    def learn(self, found: list[ModelFacts]) -> None:
        """Store a fetched list and what follows from it."""
        self.found = found
        chosen = (self.chosen,) if self.chosen else ()
        names = (model.id for model in found)
        own = (*chosen, *self.by_hand)
        self.default = own[0] if own else choose_chat_model(self.vendor, found)
        first = (self.default,) if self.default else ()
        self.models = list(dict.fromkeys((*first, *own, *names)))

    def model_for(self, purpose: Purpose) -> str:
        """Return the model for a purpose; it is the default where the user chose it."""
        if self.chosen or self.by_hand:
            return self.default
        return choose_job_model(self.vendor, purpose, self.found) or self.default


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """An upstream in the catalog, with its models from the settings and its default.

    `address` distinguishes upstreams of the same name in the cache file, `vendor` is
    the preset whose models these are, `known` gets the facts of the list in the file.
    """

    upstream: Upstream
    models: tuple[str, ...] = ()
    model: str = ""
    address: str = ""
    vendor: str = ""
    known: KnownModels | None = None

    @property
    def key(self) -> str:
        """The name of this upstream in the cache file."""
        name = self.upstream.name
        return f"{name}@{self.address}" if self.address else name


class ListState(NamedTuple):
    """How the fetching of a list stands: `age` is how many seconds ago it ended.

    It is None before the first end; `failure` is why the last one failed, or "".
    """

    asking: bool
    age: float | None
    failure: str


class Catalog:
    """The models of all configured upstreams. Close it when done."""

    def __init__(
        self,
        entries: Iterable[CatalogEntry],
        file: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = file
        self._clock = clock
        self._entries = {
            e.upstream.name: _Entry(
                e.upstream, e.models, e.model, e.key, e.vendor, e.known
            )
            for e in entries
        }
        keys = [entry.key for entry in self._entries.values()]
        remembered = read_lists(file, keys)
        for entry in self._entries.values():
            entry.learn([*remembered.get(entry.key, ())])
            if entry.known is not None and not entry.known.listed_facts():
                entry.known.set_listed(entry.found)

    def models_of(self, name: str) -> list[str]:
        """Return the models of an upstream: default, configured, listed."""
        return self._entries[name].models

    def default_of(self, name: str) -> str:
        """Return the default model of an upstream, or ""."""
        return self._entries[name].default

    def vendor_of(self, name: str) -> str:
        """Return the preset whose models an upstream has."""
        return self._entries[name].vendor

    def is_empty(self, name: str) -> bool:
        """Tell whether an upstream answered that it has no models, and none is set."""
        entry = self._entries[name]
        has_answered = entry.fetched > float("-inf") and not entry.failure
        return has_answered and not entry.models

    def model_for(self, name: str, purpose: Purpose) -> str:
        """Return the model of an upstream for a purpose, by default that of chats."""
        return self._entries[name].model_for(purpose)

    def presumed_default(self, name: str) -> str:
        """Return a good model of a vendor whose list cannot be had, or ""."""
        vendor = self._entries[name].vendor
        presumed = map(ModelFacts, known_table().models_of(vendor))
        return choose_chat_model(vendor, [*presumed])

    def facts_of(self, name: str, model: str) -> SourcedFacts:
        """Return what is known of a model of an upstream, and from where.

        Of an upstream that left the settings nothing is known.
        """
        entry = self._entries.get(name)
        known = entry.known if entry else None
        return known.sourced_facts(model) if known else SourcedFacts(ModelFacts(model))

    def price_of(self, name: str, model: str) -> Price | None:
        """Return the prices of a model, or None; any upstream may be named.

        What answers inside byok, such as the demo, is free.
        """
        entry = self._entries.get(name)
        if entry is not None and entry.known is None:
            return FREE
        return self.facts_of(name, model).facts.price

    def list_models(self) -> list[ListedModel]:
        """Return all models, in the order of the settings."""
        return [
            ListedModel(name, model)
            for name in self._entries
            for model in self.models_of(name)
        ]

    def state_of(self, name: str) -> ListState:
        """Return how the fetching of an upstream's list stands."""
        entry = self._entries[name]
        age = self._clock() - entry.fetched
        asking = entry.fetching is not None and not entry.fetching.done()
        return ListState(asking, None if age == float("inf") else age, entry.failure)

    def refresh(self, *, anew: bool = False) -> None:
        """Start to fetch lists that are old, or all of them; returns at once."""
        for name, entry in self._entries.items():
            old = anew or self._clock() - entry.fetched > _FRESH_SECONDS
            if old and (entry.fetching is None or entry.fetching.done()):
                entry.fetching = asyncio.ensure_future(self._fetch(name, entry))

    async def settle(self, seconds: float) -> None:
        """Wait for running fetches, for at most `seconds`."""
        tasks = [
            t for e in self._entries.values() if (t := e.fetching) and not t.done()
        ]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def close(self) -> None:
        """Cancel running fetches."""
        tasks = [e.fetching for e in self._entries.values() if e.fetching is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _fetch(self, name: str, entry: _Entry) -> None:
        try:
            found = await entry.upstream.models()
        except (UpstreamError, ConfigError, NotReady) as error:
            entry.failure = error.sentence
            entry.fetched = self._clock()
            _log.warning("no list of models: %s", error.sentence)
            return
        known = entry.known.listed_facts() if entry.known else {}
        found = found[:_MAX_LISTED]
        entry.learn([known.get(name) or ModelFacts(name) for name in found])
        entry.failure = ""
        entry.fetched = self._clock()
        lists = {e.key: e.found for e in self._entries.values() if e.found}
        await asyncio.to_thread(remember_lists, self._file, lists)
