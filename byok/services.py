"""Settings become everything that runs; opened and closed here and nowhere else."""

import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from byok.addresses import is_loopback
from byok.augment.job import Defaults
from byok.chat import Sampling
from byok.choosing import (
    Chosen,
    base_url_of,
    choose_upstreams,
    key_wanted,
    make_ladder,
    official_wanted,
)
from byok.config import Settings, UpstreamSettings, check_files, check_models
from byok.config.values import AUTO
from byok.dialects.fill_way import FillWay
from byok.dialects.named import DIALECTS
from byok.dialects.presets import DEMO
from byok.dialects.quirks import quirks_of
from byok.keys import KeyLadder
from byok.keys.lookup import UpstreamKey
from byok.knowledge import OFFICIAL, Group, Purpose, Where
from byok.paths import Paths
from byok.redact import Redactor
from byok.retrieval.code_context import CodeContext
from byok.retrieval.opening import open_context
from byok.toolcalls.extras import CallExtras
from byok.upstream.base import Upstream
from byok.upstream.catalog import Catalog, CatalogEntry
from byok.upstream.client import HttpUpstream
from byok.upstream.demo import MODEL as DEMO_MODEL
from byok.upstream.demo import DemoUpstream
from byok.upstream.fitted import FittedUpstream, Window
from byok.upstream.official import OfficialService
from byok.upstream.patience import LOCAL, REMOTE
from byok.upstream.router import Router
from byok.upstream.sending import UpstreamSpec
from byok.upstream.summaries import Summarise, Summariser
from byok.upstream.transport import Route, Transports

_log = logging.getLogger(__name__)
_LOCAL_PAUSE, _REMOTE_PAUSE = 3.0, 30.0


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that the server and the commands use."""

    settings: Settings
    paths: Paths
    choice: Chosen
    redactor: Redactor
    upstreams: Mapping[str, Upstream]
    catalog: Catalog
    router: Router
    keys: Mapping[str, UpstreamKey]
    official: OfficialService
    context: CodeContext
    extras: CallExtras

    @property
    def keeps_uploads(self) -> bool:
        """Whether the code that clients upload comes here."""
        return self.settings.routing.official.where(Group.CONTEXT) is Where.LOCAL

    def forget_keys(self) -> None:
        """Look every key up anew when it is needed next."""
        for key in self.keys.values():
            key.forget()
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


def spec_of(name: str, settings: UpstreamSettings, common: Settings) -> UpstreamSpec:
    """Say what an upstream is, by its section and by what is common to all."""
    chat, network, way = common.chat, common.network, common.completion.way
    base_url = base_url_of(settings)
    quirks = quirks_of(settings.type, base_url)
    local = is_loopback(base_url)
    proxy = "" if local else settings.proxy or network.proxy
    patience = LOCAL if local else REMOTE
    if settings.timeout:
        patience = patience.with_silence(settings.timeout)
    return UpstreamSpec(
        name=name,
        base_url=base_url,
        query=settings.query,
        dialect=DIALECTS[settings.dialect or "openai_chat"],
        quirks=quirks,
        patience=patience,
        # A local server may be started any moment: it is not left alone for long.
        breaker_pause=_LOCAL_PAUSE if local else _REMOTE_PAUSE,
        headers={**chat.headers, **settings.headers},
        extra_body={**chat.extra_body, **settings.extra_body},
        route=Route(proxy, settings.ca_file or network.ca_file),
        fill=quirks.fill if way == AUTO else (FillWay(way),),
    )


def make_upstream(
    name: str,
    settings: UpstreamSettings,
    *,
    common: Settings,
    transports: Transports,
    key: UpstreamKey,
    summarise: Summarise,
) -> Upstream:
    """Turn one section of the settings into an upstream."""
    if settings.type == DEMO:
        return DemoUpstream(name)
    spec = spec_of(name, settings, common)
    http = HttpUpstream(spec, transports, key)
    reasoning = spec.quirks.wants_reasoning
    window = Window(settings.context_window, http.windows.of, reasoning)
    return FittedUpstream(http, summarise, window)


def make_official(
    settings: Settings, transports: Transports, key: UpstreamKey, redactor: Redactor
) -> OfficialService:
    """Return the official service; without an address nothing is sent to it."""
    url, network = settings.routing.official.base_url, settings.network
    proxy = "" if is_loopback(url) else network.proxy
    route = Route(proxy, network.ca_file)
    return OfficialService(url, transports, key, redactor, route=route)


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
        NewerData, CorruptData: the files about code cannot be used.
    """
    check_files(settings)
    transports = Transports()
    redactor = redactor or Redactor()
    ladder = ladder or make_ladder(paths)
    try:
        choice = await choose_upstreams(settings, upstream, transports, ladder)
        sections = choice.upstreams.values()
        for value in (
            *settings.chat.headers.values(),
            *(v for s in sections for v in (*s.headers.values(), *s.query.values())),
        ):
            redactor.add(value)
        keys = {
            name: UpstreamKey(
                ladder,
                key_wanted(name, section),
                redactor,
                local=is_loopback(base_url_of(section)),
            )
            for name, section in choice.upstreams.items()
        }
        wanted = settings.routing.models.for_purpose(Purpose.SUMMARY)
        summarise = Summariser(wanted, lambda model: router.choose_listed(model))
        make = partial(
            make_upstream,
            common=settings,
            transports=transports,
            summarise=summarise,
        )
        upstreams = {
            name: make(name, section, key=keys[name])
            for name, section in choice.upstreams.items()
        }
        keys[OFFICIAL] = UpstreamKey(ladder, official_wanted(settings), redactor)
        official = make_official(settings, transports, keys[OFFICIAL], redactor)
        catalog = Catalog(
            (
                CatalogEntry(upstreams[name], *_models(section), base_url_of(section))
                for name, section in choice.upstreams.items()
            ),
            paths.models,
        )
        check_models(settings, choice.upstreams, model)
        default = _default_id(model, settings, choice)
        router = Router(upstreams, catalog, default)
        try:
            async with open_context(settings, paths, roots) as context:
                yield Services(
                    settings, paths, choice, redactor,
                    upstreams, catalog, router, keys, official, context, CallExtras(),
                )  # fmt: skip
        finally:
            await catalog.close()
    finally:
        await transports.close()


def _models(section: UpstreamSettings) -> tuple[tuple[str, ...], str]:
    """Return the models listed by hand, and the upstream's default."""
    if section.type == DEMO:
        return (DEMO_MODEL,), DEMO_MODEL
    return tuple(section.models), section.model


def _default_id(model: str, settings: Settings, choice: Chosen) -> str:
    """`--model` goes to the first upstream unless it is a whole id."""
    default = settings.routing.default
    if model:
        first = next(iter(choice.upstreams))
        default = model if model.startswith("byok:") else f"byok:{first}:{model}"
    return default
