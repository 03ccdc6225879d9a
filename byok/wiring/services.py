"""Open all services that the server and the commands use, by the settings.

A `Services` is immutable, so settings may change while requests run. `renew` builds
another one from new settings, for new requests; a request in progress goes on with the
one it began with. Both share everything that does not depend on the settings:
connections, the index, the stored provider data, and each upstream whose own settings
are equal (`upstreams.py`). So nothing is handed over or closed in between. Settings
that cannot be used raise an error before anything has changed. `open_services` closes
the shared parts once, at the end.
"""

import asyncio
import logging
from collections.abc import (
    AsyncIterator,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from weakref import WeakSet

from msgspec import Struct
from msgspec.structs import replace

from byok.core.code_query import RerankMode
from byok.core.platform.paths import Paths
from byok.core.platform.process import has_room
from byok.core.prompts.own_files import load_prompts
from byok.core.prompts.prompt_set import FitMemory, PromptSet
from byok.core.redact import Redactor
from byok.core.routing import OFFICIAL, EndpointGroup, ServedBy, split_id
from byok.dialects.presets import find_preset
from byok.features.base import Supplies
from byok.features.cost import PriceOf
from byok.protocols.augment.reply_job import DecodeState, make_caching_state
from byok.search.index.types import IndexOptions
from byok.search.outside.consent import Consent
from byok.search.retrieval.code_context import CodeContext
from byok.search.retrieval.model_aids import (
    ModelAids,
    NameWords,
    RemoteSearcher,
    Rerank,
    VectorSearch,
)
from byok.search.vectors.service import EmbeddingService
from byok.settings import Settings, UpstreamSettings, check_models, check_settings
from byok.settings.keys import KeyLadder
from byok.settings.keys.ladder import WEB_SEARCH, AnyKey
from byok.upstream.base import Destination, Upstream
from byok.upstream.catalog import Catalog, CatalogEntry
from byok.upstream.fallback import FallbackMemory, Fallbacks
from byok.upstream.model_facts import Profiles
from byok.upstream.moments import MomentMemory, Moments
from byok.upstream.official import OfficialService
from byok.upstream.own_questions import QuestionRoutes
from byok.upstream.provider_data_store import ProviderDataStore
from byok.upstream.router import PLACEHOLDER, ChatPlaces, Router
from byok.upstream.transport import Transports
from byok.wiring.apis import base_url_of, local_upstreams
from byok.wiring.key_sources import make_ladder, official_key_lookup, web_key_lookup
from byok.wiring.upstreams import (
    PooledUpstream,
    RequestDefaults,
    Shared,
    UpstreamPool,
    UpstreamSelection,
    default_id,
    make_official,
    models_of,
    select_upstreams,
    values_to_hide,
)

_log = logging.getLogger(__name__)
_SPARE_MIB = 128  # of memory; with less to spare, readings are not cached


@asynccontextmanager
async def open_context(
    settings: Settings,
    paths: Paths,
    roots: Iterable[Path] = (),
    vectors: VectorSearch | None = None,
) -> AsyncIterator[CodeContext]:
    """Open the code index, and follow the configured workspaces and `roots`.

    `vectors` is notified of the open index.

    Raises:
        CannotStart: the database is damaged, or of a later version.
        IndexInUse: another process has the index open.
    """
    options = index_options(settings, paths, roots)
    mode = settings.retrieval.mode
    context = CodeContext(paths.database, paths.index, options, mode, vectors)
    try:
        await context.start()
        yield context
    finally:
        await context.close()


async def search_text(
    settings: Settings,
    paths: Paths,
    roots: Iterable[Path],
    question: str,
    folders: Sequence[Path],
) -> str:
    """Answer with ripgrep, because another process has the index open."""
    from byok.core.platform.programs import find_program
    from byok.search.index.files.ignore import rules_of
    from byok.search.retrieval.ripgrep import Ripgrep, answer_without_index

    options = index_options(settings, paths, roots)
    ripgrep = Ripgrep(lambda: find_program("rg", never=options.roots))
    return await answer_without_index(
        ripgrep, lambda root: rules_of(root, options), question, folders
    )


def index_options(
    settings: Settings, paths: Paths, roots: Iterable[Path] = ()
) -> IndexOptions:
    """Return the options of the index: the settings, and byok's own folders."""
    context = settings.context
    return IndexOptions(
        roots=[*map(Path, context.workspaces), *roots],
        max_files=context.max_files,
        extensions=context.extensions,
        allow_secret=context.allow_secret,
        workers=context.workers,
        parse_seconds=context.parse_seconds,
        store_bytes=context.store_mb * 2**20,
        own_folders=paths.folders,
    )


class Services(Struct, frozen=True):
    """All services for one version of the settings."""

    settings: Settings
    paths: Paths
    selection: UpstreamSelection
    redactor: Redactor
    ladder: KeyLadder
    upstreams: Mapping[str, Upstream]
    catalog: Catalog
    router: Router
    fallbacks: Fallbacks
    moments: Moments
    keys: Mapping[str, AnyKey]
    official: OfficialService
    context: CodeContext
    embeddings: EmbeddingService
    provider_data: ProviderDataStore
    decoding: DecodeState
    chat_places: ChatPlaces
    defaults: RequestDefaults
    factory: "_ServicesFactory"

    async def renew(self, settings: Settings) -> "Services":
        """Return the services for other settings; these stay usable.

        Raises:
            ConfigError: the settings cannot be used.
        """
        return await self.factory.make(settings, self.context)

    @property
    def price_of(self) -> PriceOf:
        """A function that returns the price of a model, None if it is unknown."""
        return self.catalog.price_of

    @property
    def for_features(self) -> Supplies:
        """What features use of these services."""
        presets = {
            name: find_preset(section.type, base_url_of(section)) or name
            for name, section in self.selection.upstreams.items()
        }
        ask_index = self.context.status
        return Supplies(self.settings, self.price_of, ask_index, presets, self.keys)

    @property
    def keeps_uploads(self) -> bool:
        """Whether byok itself stores the code that clients upload."""
        where = self.settings.routing.official.where(EndpointGroup.CONTEXT)
        return where is ServedBy.LOCAL

    def shrink(self) -> None:
        """Empty caches, and compress other data, while byok is idle."""
        self.decoding.forget()
        self.factory.shared.prompt_changes.compress()

    def forget_keys(self) -> None:
        """Look up every key again at its next use."""
        for key in self.keys.values():
            key.forget(everywhere=False)
        _log.info("keys were reloaded")


class _ServicesFactory:
    """Builds the `Services` for each version of the settings, and holds shared parts.

    `upstream` and `model` are those of the command line, which outrank all settings.
    """

    def __init__(
        self,
        paths: Paths,
        shared: Shared,
        upstream: str,
        model: str,
        *,
        embeds: bool,
    ) -> None:
        self._paths = paths
        self._embeds = embeds
        self._consent = Consent(paths.embedding_consent)
        self.embeddings = EmbeddingService(paths.vectors, paths.database, self._consent)
        self._upstream = upstream
        self._model = model
        self.shared = shared
        self._pool = UpstreamPool(shared)
        self._decoding = make_caching_state(partial(has_room, _SPARE_MIB))
        self._chat_places = ChatPlaces()
        self._fits = FitMemory()
        self._fallback_memory = FallbackMemory()
        self._moment_memory = MomentMemory()
        self._selection: UpstreamSelection | None = None  # the last one
        self._catalogs: WeakSet[Catalog] = WeakSet()
        self._cached_remote: tuple[object, RemoteSearcher] | None = None  # with its key

    async def make(self, settings: Settings, context: CodeContext) -> Services:
        """Build the services for these settings.

        Raises:
            ConfigError: the chosen upstream or model does not exist, or one of the
                user's prompts cannot be used.
        """
        selection = await self._select(settings)
        prompts = await asyncio.to_thread(load_prompts, self._paths.prompts)
        for value in values_to_hide(settings, selection.upstreams.values()):
            self.shared.redactor.add(value)
        pooled = self._pool.build(
            settings, self._sections_to_build(settings, selection), prompts
        )
        keys = {name: entry.key for name, entry in pooled.items()}
        keys[OFFICIAL] = self.shared.make_key(official_key_lookup(settings))
        if (web_lookup := web_key_lookup(settings)).base_url:
            keys[WEB_SEARCH] = self.shared.make_key(web_lookup)
        upstreams = {name: pooled[name].upstream for name in selection.upstreams}
        catalog = self._make_catalog(selection, pooled)
        default = default_id(selection, settings, self._model)
        local = local_upstreams(selection.upstreams)
        router = self._pool.router = Router(
            upstreams, catalog, default, settings.routing.aliases, local
        )
        # A name without an upstream may be that of any upstream's model.
        chosen = router.default()
        is_sure = split_id(router.resolve(default)) or (default and len(upstreams) == 1)
        if is_sure and chosen.model != PLACEHOLDER:
            catalog[chosen.upstream].chosen = chosen.model
        fallbacks = self._pool.fallbacks = Fallbacks(
            router, settings.routing.fallback.for_purpose, local, self._fallback_memory
        )
        moments = Moments(
            settings.routing.models.for_moments,
            settings.chat.long_context_share,
            router,
            partial(_window_of, catalog),
            local,
            self._moment_memory,
        )
        official = make_official(settings, self.shared, keys[OFFICIAL])
        await self._configure_embeddings(settings, pooled, context)
        aids = make_aids(settings, fallbacks, prompts, context.aids)
        context.aids = replace(aids, remote=self._reuse_or_build_remote(settings))
        shared = self.shared
        return Services(
            settings, self._paths, selection, shared.redactor, shared.ladder,
            upstreams, catalog, router, fallbacks, moments, keys, official, context,
            self.embeddings, shared.provider_data, self._decoding,
            self._chat_places, RequestDefaults(
                settings, selection.upstreams, catalog, prompts, self._fits
            ),
            self,
        )  # fmt: skip

    def _sections_to_build(
        self, settings: Settings, selection: UpstreamSelection
    ) -> Mapping[str, UpstreamSettings]:
        if not (self._embeds and settings.embeddings.on):
            return selection.upstreams
        from byok.wiring.embedders import with_embedder

        return with_embedder(selection.upstreams, settings)

    async def _configure_embeddings(
        self,
        settings: Settings,
        pooled: Mapping[str, PooledUpstream],
        context: CodeContext,
    ) -> None:
        """Configure vectors by the settings, unless it is for a short command."""
        plan = None
        if self._embeds and settings.embeddings.on:
            from byok.wiring.embedders import make_plan

            plan = make_plan(settings, pooled, self.shared, self._consent)
        await self.embeddings.configure(plan, context.open)
        vectors = self.embeddings if plan else None
        context.aids = replace(context.aids, vectors=vectors)

    def _reuse_or_build_remote(self, settings: Settings) -> RemoteSearcher | None:
        """Return the client of the search server; the same one for equal settings."""
        if not settings.search.remote.on:
            return None
        key = (settings.search.remote, settings.network)
        if self._cached_remote and self._cached_remote[0] == key:
            return self._cached_remote[1]
        from byok.wiring.remote_search import make_remote_search

        remote = make_remote_search(settings, self._paths, self.shared)
        self._cached_remote = (key, remote)
        return remote

    async def _select(self, settings: Settings) -> UpstreamSelection:
        check_settings(settings, self._upstream, self._model)
        selection = await select_upstreams(
            settings,
            self._upstream,
            self.shared.transports,
            self.shared.ladder,
            self._selection,
        )
        check_models(settings, selection.upstreams, self._model)
        self._selection = selection
        return selection

    def _make_catalog(
        self, selection: UpstreamSelection, pooled: Mapping[str, PooledUpstream]
    ) -> Catalog:
        entries = (
            CatalogEntry(
                pooled[name].upstream,
                *models_of(section),
                base_url_of(section),
                find_preset(section.type, base_url_of(section)),
                pooled[name].known,
            )
            for name, section in selection.upstreams.items()
        )
        catalog = Catalog(entries, self._paths.models)
        self._catalogs.add(catalog)
        return catalog

    async def close(self) -> None:
        """Stop fetching model lists, and close every connection."""
        for catalog in list(self._catalogs):
            await catalog.close()
        await self.shared.transports.close()
        await asyncio.to_thread(self.shared.provider_data.close)
        await asyncio.to_thread(self.shared.profiles.close)


@asynccontextmanager
async def open_services(
    settings: Settings,
    paths: Paths,
    *,
    upstream: str = "",
    model: str = "",
    ladder: KeyLadder | None = None,
    redactor: Redactor | None = None,
    roots: Iterable[Path] = (),
    embeds: bool = True,
    transports: Transports | None = None,
) -> AsyncIterator[Services]:
    """Open all services; no upstream need be reachable. `roots` are more workspaces.

    Without `embeds` no vectors are made or used, whatever the settings say. Tests pass
    other `transports`.

    Raises:
        ConfigError: the chosen upstream or model does not exist.
        CannotStart: the database cannot be used.
    """
    check_settings(settings, upstream, model)
    shared = Shared(
        transports or Transports(),
        ProviderDataStore(paths.provider_data),
        Profiles(paths.profiles),
        ladder or make_ladder(paths),
        redactor or Redactor(),
    )
    factory = _ServicesFactory(paths, shared, upstream, model, embeds=embeds)
    vectors = factory.embeddings if embeds else None
    try:
        async with open_context(settings, paths, roots, vectors) as context:
            yield await factory.make(settings, context)
    finally:
        await factory.close()


def make_aids(
    settings: Settings, fallbacks: Fallbacks, prompts: PromptSet, previous: ModelAids
) -> ModelAids:
    """Return the models that help code search, with the vectors of `previous`.

    The modules of aids that are off are not imported.
    """
    routing = settings.routing
    chats_here = routing.official.where(EndpointGroup.CHAT) is ServedBy.LOCAL
    routes = QuestionRoutes(fallbacks, routing.models.chat if chats_here else None)
    words: NameWords | None = None
    rerank: Rerank | None = None
    if small := routing.models.small:
        from byok.search.retrieval.model_words import ModelWords
        from byok.upstream.own_questions import ShortQuestion

        words = ModelWords(ShortQuestion(partial(routes.find, small)), prompts)
    if settings.retrieval.rerank is not RerankMode.OFF:
        from byok.search.retrieval.rerank import ModelRerank
        from byok.upstream.own_questions import ShortQuestion

        find = partial(routes.find, routing.models.rerank)
        rerank = ModelRerank(ShortQuestion(find), prompts)
    return ModelAids(words=words, rerank=rerank, vectors=previous.vectors)


def _window_of(catalog: Catalog, destination: Destination) -> int:
    """Return the context window of a model in tokens, 0 if it is unknown."""
    facts = catalog.facts_of(destination.upstream.name, destination.model).facts
    return facts.loaded_window or facts.window
