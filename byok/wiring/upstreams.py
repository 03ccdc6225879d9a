"""Build one upstream from its section of the settings."""

import logging

from byok.config import Settings, UpstreamSettings
from byok.config.values import AUTO
from byok.dialects.base import Codec
from byok.dialects.fim.codecs import codecs_of, ollama_codecs
from byok.dialects.fim.templates import OLLAMA_MODES, FimMode, fim_profile_of
from byok.dialects.model_facts import ModelFacts
from byok.dialects.presets import DEMO, OLLAMA, find_preset, vendor_of
from byok.dialects.refusals import window_cure
from byok.keys.lookup import AnyKey
from byok.redact import Redactor
from byok.upstream.base import Upstream
from byok.upstream.client import HttpUpstream
from byok.upstream.context_window import ShorterConversation, WindowSource
from byok.upstream.demo import MODEL as DEMO_MODEL
from byok.upstream.demo import DemoUpstream
from byok.upstream.model_facts import KnownModels
from byok.upstream.official import OfficialService
from byok.upstream.profiles import Profiles
from byok.upstream.provider_data_store import ProviderDataStore
from byok.upstream.restoring import RestoredData
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.summaries import Summarise
from byok.upstream.timeouts import LOCAL, REASONING, REMOTE
from byok.upstream.transport import Route, Transports
from byok.urls import is_loopback
from byok.wiring.apis import apis_of

_log = logging.getLogger(__name__)
_LOCAL_PAUSE, _REMOTE_PAUSE = 3.0, 30.0  # of the circuit breaker, in seconds


def models_of(section: UpstreamSettings) -> tuple[tuple[str, ...], str]:
    """Return the models listed in the settings, and the upstream's default model."""
    if section.type == DEMO:
        return (DEMO_MODEL,), DEMO_MODEL
    return tuple(section.models), section.model


def make_spec(name: str, settings: UpstreamSettings, common: Settings) -> UpstreamSpec:
    """Combine a section with the settings that are common to all upstreams."""
    chat, network = common.chat, common.network
    apis = apis_of(settings)
    local = is_loopback(apis[0].base_url)
    proxy = "" if local else settings.proxy or network.proxy
    timeouts, reasoning = (LOCAL, LOCAL) if local else (REMOTE, REASONING)
    if settings.timeout:
        timeouts = reasoning = timeouts.with_idle(settings.timeout)
    return UpstreamSpec(
        name=name,
        apis=apis,
        query=settings.query,
        timeouts=timeouts,
        reasoning_timeouts=reasoning,
        patience=settings.patience,
        # A local server may be started at any moment, so its pause is short.
        breaker_pause=_LOCAL_PAUSE if local else _REMOTE_PAUSE,
        headers={**chat.headers, **settings.headers},
        extra_body={**chat.extra_body, **settings.extra_body},
        cache=settings.cache,
        long_cache=settings.long_cache,
        num_ctx=settings.num_ctx,
        route=Route(proxy, settings.ca_file or network.ca_file),
        vendor=find_preset(settings.type, apis[0].base_url),
        facts=_facts_of(settings),
        fim=_fim_codecs(settings.type, apis[0], common.completion.way),
    )


def _facts_of(settings: UpstreamSettings) -> dict[str, ModelFacts]:
    """Return what the user says about models: about one, and under "" about all."""
    facts = {model: own.as_facts(model) for model, own in settings.facts.items()}
    if settings.context_window:
        facts[""] = ModelFacts("", window=settings.context_window)
    return facts


def _fim_codecs(kind: str, api: Api, way: str) -> dict[FimMode, Codec | None]:
    """Return the codecs for FIM that are tried, beside those of a chat."""
    if api.dialect.name == OLLAMA:
        codecs, modes = ollama_codecs(), OLLAMA_MODES
    elif "completions" in api.dialect.serves:
        profile = fim_profile_of(vendor_of(kind, api.base_url))
        codecs, modes = codecs_of(profile), profile.modes
    else:
        return {FimMode.CHAT: None}
    modes = modes if way == AUTO else (FimMode(way),)
    return {mode: codecs.get(mode) for mode in modes}


def make_upstream(
    name: str,
    settings: UpstreamSettings,
    *,
    common: Settings,
    transports: Transports,
    key: AnyKey,
    summarise: Summarise,
    provider_data: ProviderDataStore,
    profiles: Profiles,
) -> tuple[Upstream, KnownModels | None]:
    """Build the upstream of one section, and what it knows about its models."""
    if settings.type == DEMO:
        return DemoUpstream(name), None
    spec = make_spec(name, settings, common)
    http = HttpUpstream(spec, transports, key, profiles=profiles)
    if settings.num_ctx and not spec.api.dialect.loads_window:
        _log.warning("%s: num_ctx has no effect, its server cannot be told", name)
    dialect, vendor = spec.api.dialect, vendor_of(settings.type, spec.api.base_url)
    window = WindowSource(
        settings.context_window,
        http.window,
        dialect.sends_thoughts,
        may_cut=not dialect.loads_window,
        cure=window_cure(vendor, dialect.name),
        by_model={model: own.window for model, own in settings.facts.items()},
    )
    shorter = ShorterConversation(http, summarise, window)
    http.recoveries += (shorter, RestoredData(provider_data))
    return http, http.known


def make_official(
    settings: Settings, transports: Transports, key: AnyKey, redactor: Redactor
) -> OfficialService:
    """Build the official service; without an address nothing is sent to it."""
    url, network = settings.routing.official.base_url, settings.network
    proxy = "" if is_loopback(url) else network.proxy
    route = Route(proxy, network.ca_file)
    return OfficialService(url, transports, key, redactor, route=route)
