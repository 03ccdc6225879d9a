"""Settings become everything that runs; opened and closed here and nowhere else."""

import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from weakref import WeakSet

from byok.augment.reply_job import Defaults
from byok.chat import Sampling
from byok.config import Settings, UpstreamSettings, check_models, check_settings
from byok.keys import KeyLadder, KeyWanted
from byok.keys.lookup import UpstreamKey
from byok.platform.paths import Paths
from byok.purposes import Purpose
from byok.redact import Redactor
from byok.retrieval.code_context import CodeContext
from byok.routing import OFFICIAL, EndpointGroup, ServedBy
from byok.toolcalls.provider_data import ProviderDataMemory
from byok.upstream.base import Upstream
from byok.upstream.catalog import Catalog, CatalogEntry
from byok.upstream.official import OfficialService
from byok.upstream.router import Destination, Router
from byok.upstream.summaries import Summariser
from byok.upstream.transport import Transports
from byok.urls import is_loopback
from byok.wiring.open_context import open_context
from byok.wiring.upstream_selection import (
    UpstreamSelection,
    base_url_of,
    default_id,
    key_wanted,
    make_ladder,
    models_of,
    official_wanted,
    select_upstreams,
    values_to_hide,
)
from byok.wiring.upstreams import make_official, make_upstream, spec_of

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that the server and the commands use."""

    settings: Settings
    paths: Paths
    choice: UpstreamSelection
    redactor: Redactor
    ladder: KeyLadder
    upstreams: Mapping[str, Upstream]
    catalog: Catalog
    router: Router
    keys: Mapping[str, UpstreamKey]
    official: OfficialService
    context: CodeContext
    provider_data: ProviderDataMemory
    maker: "_Maker"

    async def renew(self, settings: Settings) -> "Services":
        """Return what runs by other settings; these here go on for open answers.

        Raises:
            ConfigError: the settings cannot be used.
        """
        return await self.maker.make(settings, self.context)

    @property
    def keeps_uploads(self) -> bool:
        """Whether the code that clients upload comes here."""
        return (
            self.settings.routing.official.where(EndpointGroup.CONTEXT)
            is ServedBy.LOCAL
        )

    def forget_keys(self) -> None:
        """Look every key up anew when it is needed next."""
        for key in self.keys.values():
            key.forget(everywhere=False)
        _log.info("keys are read anew")

    def defaults(self, endpoint: str, upstream: str) -> Defaults:
        """Return the user's defaults for an endpoint and an upstream."""
        chat = self.settings.chat
        own = self.choice.upstreams.get(upstream) or UpstreamSettings()
        sampling = Sampling(
            *(
                getattr(own, name) if getattr(own, name) is not None
                else getattr(chat, name)
                for name in ("temperature", "top_p", "max_tokens")
            )
        )  # fmt: skip
        addition = self.settings.prompts.get(endpoint.lstrip("/"), "")
        return Defaults(own.system_prompt or chat.system_prompt, addition, sampling)


class _Made(NamedTuple):
    """An upstream, its key, and what both were made of."""

    of: tuple[object, ...]
    upstream: Upstream
    key: UpstreamKey


class _Maker:
    """Makes services by settings, one after another.

    They share what settings do not change: connections, the index, what is known of
    tool calls; and each upstream whose own settings are the same, with all that it has
    learned.
    """

    def __init__(
        self,
        paths: Paths,
        redactor: Redactor,
        ladder: KeyLadder,
        upstream: str,
        model: str,
    ) -> None:
        self._paths = paths
        self._redactor = redactor
        self._ladder = ladder
        self._upstream = upstream
        self._model = model
        self._transports = Transports()
        self._provider_data = ProviderDataMemory()
        self._choice: UpstreamSelection | None = None
        self._made: dict[str, _Made] = {}
        self._summarise = Summariser("", self._find)
        self._summarised_by = ""
        self._router: Router  # nobody asks before the first is made
        self._catalogs: WeakSet[Catalog] = WeakSet()

    async def make(self, settings: Settings, context: CodeContext) -> Services:
        """Make the services of these settings.

        Raises:
            ConfigError: the chosen upstream or model does not exist.
        """
        check_settings(settings, self._upstream, self._model)
        choice = await select_upstreams(
            settings, self._upstream, self._transports, self._ladder, self._choice
        )
        check_models(settings, choice.upstreams, self._model)
        self._choice = choice
        for value in values_to_hide(settings, choice):
            self._redactor.add(value)
        wanted = settings.routing.models.for_purpose(Purpose.SUMMARY)
        if wanted != self._summarised_by:
            self._summarise = Summariser(wanted, self._find)
            self._summarised_by = wanted
        self._made = {
            name: self._reuse_or_make(name, section, settings)
            for name, section in choice.upstreams.items()
        }
        upstreams = {name: made.upstream for name, made in self._made.items()}
        keys = {name: made.key for name, made in self._made.items()}
        keys[OFFICIAL] = self._key(official_wanted(settings))
        ours = self._transports, keys[OFFICIAL], self._redactor
        catalog = Catalog(
            (
                CatalogEntry(upstreams[name], *models_of(section), base_url_of(section))
                for name, section in choice.upstreams.items()
            ),
            self._paths.models,
        )
        self._catalogs.add(catalog)
        default = default_id(choice, settings, self._model)
        router = self._router = Router(upstreams, catalog, default)
        return Services(
            settings, self._paths, choice, self._redactor, self._ladder,
            upstreams, catalog, router, keys, make_official(settings, *ours), context,
            self._provider_data, self,
        )  # fmt: skip

    async def close(self) -> None:
        """Stop fetching lists, and close every connection."""
        for catalog in list(self._catalogs):
            await catalog.close()
        await self._transports.close()

    def _reuse_or_make(
        self, name: str, section: UpstreamSettings, settings: Settings
    ) -> _Made:
        """Return an upstream; one that would be made alike goes on."""
        of = (section, spec_of(name, section, settings), self._summarise)
        known = self._made.get(name)
        if known is not None and known.of == of:
            return known
        key = self._key(key_wanted(name, section))
        upstream = make_upstream(
            name,
            section,
            common=settings,
            transports=self._transports,
            key=key,
            summarise=self._summarise,
        )
        return _Made(of, upstream, key)

    def _key(self, wanted: KeyWanted) -> UpstreamKey:
        local = wanted.name != OFFICIAL and is_loopback(wanted.base_url)
        return UpstreamKey(self._ladder, wanted, self._redactor, local=local)

    async def _find(self, model: str) -> Destination:
        """Say who writes a summary, by the settings that are in force by then."""
        return await self._router.choose_listed(model)


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
) -> AsyncIterator[Services]:
    """Open everything; no upstream need be reachable. `roots` are more workspaces.

    Raises:
        ConfigError: the chosen upstream or model does not exist.
        CannotStart: the files about code cannot be used.
    """
    check_settings(settings, upstream, model)
    redactor, ladder = redactor or Redactor(), ladder or make_ladder(paths)
    maker = _Maker(paths, redactor, ladder, upstream, model)
    try:
        async with open_context(settings, paths, roots) as context:
            yield await maker.make(settings, context)
    finally:
        await maker.close()
