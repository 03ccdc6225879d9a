"""The catalog of models: those of the settings, and the lists of upstreams.

Reading never waits. Lists are fetched in the background and cached in a file, so that
they are known right after a start.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import orjson
from msgspec import Struct, field

from byok.core.errors import (
    ConfigError,
    NotReady,
    UpstreamError,
    UpstreamGarbled,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from byok.core.platform.paths import write_private
from byok.core.routing import ListedModel, Purpose
from byok.core.suggest import did_you_mean
from byok.core.wire.json_body import parse_json
from byok.dialects.default_models import choose_chat_model, choose_job_model
from byok.dialects.model_facts import (
    FREE,
    ModelFacts,
    Price,
    SourcedFacts,
    read_facts,
    write_facts,
)
from byok.dialects.presets import OLLAMA, SUGGESTED_MODEL
from byok.upstream.base import Upstream
from byok.upstream.http_body import hang_up, read_limited
from byok.upstream.http_sender import Sender
from byok.upstream.model_facts import KnownModels
from byok.upstream.model_table import known_table
from byok.upstream.spec import Api
from byok.upstream.transport import Route, Transports

_log = logging.getLogger(__name__)
_MAX_CACHED_LISTS = 50
_MAX_CACHED_MODELS = 500  # of a list
_FRESH_SECONDS = 300.0
_EMPTY_SECONDS = 2.0  # a server may be started, and get a model, at any moment
_MAX_PAGES = 20
_MAX_PAGE_BYTES = 16 * 2**20
_LIST_SECONDS = 12.0  # to fetch all pages
_PROBE_SECONDS = 0.5
_LATEST = ":latest"  # Ollama's name for a model without a tag
_PROBE_BYTES = 64  # of an answer, to see whether it is JSON


class CatalogEntry(Struct, eq=False):
    """An upstream in the catalog, with its models from the settings and its default.

    The catalog changes the fields from `chosen` on.

    Attributes:
        models: the models of the settings.
        model: the default model of the settings, "" for none.
        address: distinguishes upstreams of the same name in the cache file.
        vendor: the preset whose models these are.
        known: gets the facts of the list in the cache file.
        chosen: the user's default model, until a list was searched for it.
        listed: the models of the last list.
        names: the default, configured and listed models.
        default: the default model, "" if there is none.
        fetched: when the last fetch ended.
        fresh_for: how many seconds the list is used before it is fetched again.
        failure: why the last fetch failed, "" if it did not, and `code` of the error.
        failing: since when fetches fail.
    """

    upstream: Upstream
    models: tuple[str, ...] = ()
    model: str = ""
    address: str = ""
    vendor: str = ""
    known: KnownModels | None = None
    chosen: str = ""
    listed: list[ModelFacts] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    default: str = ""
    fetched: float = float("-inf")
    fresh_for: float = _FRESH_SECONDS
    failure: str = ""
    failing: float = float("inf")
    code: str = ""
    fetching: asyncio.Task[None] | None = None

    @property
    def key(self) -> str:
        """The name of this upstream in the cache file."""
        name = self.upstream.name
        return f"{name}@{self.address}" if self.address else name

    @property
    def is_empty(self) -> bool:
        """Whether the upstream answered that it has no models, and none is set."""
        return self.fetched > float("-inf") and not (self.failure or self.names)

    @property
    def presumed_default(self) -> str:
        """A good model of the vendor, for a list that cannot be fetched, or ""."""
        presumed = map(ModelFacts, known_table().models_of(self.vendor))
        return choose_chat_model(self.vendor, [*presumed])

    def set_listed(self, listed: list[ModelFacts]) -> None:
        """Store a fetched list, and derive the names and the default from it."""
        self.listed = listed
        configured = (*((self.model,) if self.model else ()), *self.models)
        if configured:
            self.default = configured[0]
        else:
            self.default = choose_chat_model(self.vendor, listed)
        first = (self.default,) if self.default else ()
        ids = (model.id for model in listed)
        self.names = list(dict.fromkeys((*first, *configured, *ids)))

    def model_for(self, purpose: Purpose) -> str:
        """Return the model for a purpose; it is the default if the user chose it."""
        if self.model or self.models:
            return self.default
        return choose_job_model(self.vendor, purpose, self.listed) or self.default


class ListState(NamedTuple):
    """The state of fetching a list; `asking`: a fetch is running.

    `age` is how many seconds ago the last fetch ended, None if there was none. If it
    failed, `failure` is the reason, `code` that of the error, and `failing` for how
    many seconds fetches have failed.
    """

    asking: bool
    age: float | None
    failure: str
    failing: float
    code: str


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
        self._entries = {entry.upstream.name: entry for entry in entries}
        keys = [entry.key for entry in self._entries.values()]
        cached = read_lists(file, keys)
        for entry in self._entries.values():
            entry.chosen = entry.model
            entry.set_listed([*cached.get(entry.key, ())])
            if entry.known is not None and not entry.known.listed_facts():
                entry.known.set_listed(entry.listed)

    def __getitem__(self, name: str) -> CatalogEntry:
        """Return the entry of an upstream."""
        return self._entries[name]

    def facts_of(self, name: str, model: str) -> SourcedFacts:
        """Return the known facts about a model of an upstream, with their sources.

        There are none if the upstream is no longer in the settings.
        """
        entry = self._entries.get(name)
        known = entry.known if entry else None
        return known.sourced_facts(model) if known else SourcedFacts(ModelFacts(model))

    def price_of(self, name: str, model: str) -> Price | None:
        """Return the prices of a model, or None; the upstream may be unknown.

        An upstream inside byok, such as the demo, is free.
        """
        entry = self._entries.get(name)
        if entry is not None and entry.known is None:
            return FREE
        return self.facts_of(name, model).facts.price

    def list_models(self) -> list[ListedModel]:
        """Return all models, in the order of the settings."""
        return [
            ListedModel(name, model)
            for name, entry in self._entries.items()
            for model in entry.names
        ]

    def state_of(self, name: str) -> ListState:
        """Return the state of fetching an upstream's list."""
        entry = self._entries[name]
        now = self._clock()
        age, failing = now - entry.fetched, max(0.0, now - entry.failing)
        asking = entry.fetching is not None and not entry.fetching.done()
        known_age = None if age == float("inf") else age
        return ListState(asking, known_age, entry.failure, failing, entry.code)

    def refresh(self, *, anew: bool = False) -> None:
        """Start to fetch old lists, or `anew` all of them; returns at once."""
        for name, entry in self._entries.items():
            is_due = anew or self._clock() - entry.fetched > entry.fresh_for
            if is_due and (entry.fetching is None or entry.fetching.done()):
                entry.fetching = asyncio.ensure_future(self._try_to_fetch(name))

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

    async def fetch(self, name: str) -> list[str]:
        """Fetch the list of an upstream now; return its models.

        Raises:
            UpstreamError: it gave no list.
            ConfigError, NotReady: its key is not available.
        """
        entry = self._entries[name]
        try:
            models = await entry.upstream.models()
        except (UpstreamError, ConfigError, NotReady) as error:
            entry.failure, entry.code = error.sentence, error.code
            entry.fetched = self._clock()
            entry.failing = min(entry.failing, entry.fetched)
            may_start = isinstance(error, UpstreamUnreachable) and not entry.names
            entry.fresh_for = _EMPTY_SECONDS if may_start else _FRESH_SECONDS
            raise
        facts = entry.known.listed_facts() if entry.known else {}
        cached = models[:_MAX_CACHED_MODELS]
        entry.set_listed([facts.get(model) or ModelFacts(model) for model in cached])
        entry.failure = entry.code = ""
        entry.failing = float("inf")
        entry.fetched = self._clock()
        entry.fresh_for = _FRESH_SECONDS if entry.names else _EMPTY_SECONDS
        if not entry.names:
            cure = f" Get one: ollama pull {SUGGESTED_MODEL}"
            _log.warning(
                "%s has no model yet.%s", name, cure if entry.vendor == OLLAMA else ""
            )
        if entry.chosen and models:
            _warn_if_unknown(entry, models)
        entry.chosen = ""
        lists = {e.key: e.listed for e in self._entries.values() if e.listed}
        await asyncio.to_thread(write_lists, self._file, lists)
        return models

    async def _try_to_fetch(self, name: str) -> None:
        try:
            await self.fetch(name)
        except (UpstreamError, ConfigError, NotReady) as error:
            _log.warning("no list of models: %s", error.sentence)


def _warn_if_unknown(entry: CatalogEntry, listed: Sequence[str]) -> None:
    """Log that neither a list nor the settings nor byok's table have the default."""
    known = (*entry.models, *known_table().models_of(entry.vendor))
    if entry.chosen not in known and not is_listed(entry.chosen, listed):
        guess = did_you_mean(entry.chosen, listed[:_MAX_CACHED_MODELS])
        cure = f"{guess} All: byok models".lstrip()
        name = entry.upstream.name
        _log.warning("%s lists no model %.80r. %s", name, entry.chosen, cure)


def is_listed(model: str, listed: Sequence[str]) -> bool:
    """Tell whether a list has a model, or a dated one that its name is an alias of."""
    names = {name.removeprefix("models/") for name in listed}
    plain = model.removeprefix("models/")
    dated = (name.startswith(f"{plain}-20") for name in names)
    return plain in names or f"{plain}{_LATEST}" in names or any(dated)


def read_lists(file: Path, keys: Iterable[str]) -> Mapping[str, list[ModelFacts]]:
    """Read the lists of these upstreams from the cache file; damage is ignored.

    The file is `{NAME@ADDRESS: [MODEL, ...]}`; a model is its id, or an object with
    `id` and facts.
    """
    lists = _read(file)
    return {
        key: [model for row in rows if (model := _read_model(row)) is not None]
        for key in keys
        if isinstance(rows := lists.get(key), list)
    }


def write_lists(file: Path, lists: Mapping[str, Sequence[ModelFacts]]) -> None:
    """Write these lists to the cache file; those of other upstreams stay."""
    written = {key: [*map(_write_model, models)] for key, models in lists.items()}
    merged = {**_read(file), **written}
    newest = dict(list(merged.items())[-_MAX_CACHED_LISTS:])
    try:
        write_private(file, orjson.dumps(newest).decode())
    except OSError as error:
        _log.warning("the list of models cannot be kept: %s", error.strerror)


def _read(file: Path) -> dict[str, Any]:
    try:
        lists = orjson.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return lists if isinstance(lists, dict) else {}


def _read_model(row: Any) -> ModelFacts | None:
    model = row.get("id") if isinstance(row, dict) else row
    return read_facts(model, row) if isinstance(model, str) and model else None


def _write_model(facts: ModelFacts) -> Any:
    fields = write_facts(facts)
    return {"id": facts.id, **fields} if fields else facts.id


async def fetch_models(sender: Sender, api: Api) -> list[ModelFacts]:
    """Fetch the models of all pages; no page is fetched twice.

    Raises:
        UpstreamError: a page is missing, no JSON or too large, or it took too long.
    """
    models: dict[str, ModelFacts] = {}
    path, paths = api.dialect.models_path, set[str]()
    try:
        async with asyncio.timeout(_LIST_SECONDS):
            while path and path not in paths and len(paths) < _MAX_PAGES:
                paths.add(path)
                page = api.dialect.read_models(await _get(sender, api, path))
                for model in page.models:
                    models.setdefault(model.id, model)
                path = page.next_path
    except TimeoutError as error:
        raise UpstreamTimeout("it did not list its models in time.") from error
    return [*models.values()]


async def _get(sender: Sender, api: Api, path: str) -> Any:
    async with sender.open(api, path) as response:
        raw = await read_limited(response, _MAX_PAGE_BYTES)
    try:
        return parse_json(raw)
    except (ValueError, RecursionError) as error:
        raise UpstreamGarbled("its list of models is not JSON.") from error


async def find_answering(
    transports: Transports,
    candidates: Mapping[str, Api],
    seconds: float = _PROBE_SECONDS,
) -> list[str]:
    """Return the names of the APIs on this machine that answer with a list of models.

    They are in the order of `candidates`.
    """
    transport = transports.by(Route())

    async def probe(api: Api) -> bool:
        url = api.url(api.dialect.models_path)
        request = httpx.Request("GET", url, headers=dict(api.dialect.headers("")))
        try:
            async with asyncio.timeout(seconds):
                response = await transport.handle_async_request(request)
                try:
                    start = await read_limited(response, _PROBE_BYTES, cut=True)
                finally:
                    await hang_up(response)
        except (httpx.HTTPError, TimeoutError):
            return False
        return response.is_success and start[:1] in (b"{", b"[")

    answers = await asyncio.gather(*(probe(api) for api in candidates.values()))
    return [name for name, ok in zip(candidates, answers, strict=True) if ok]
