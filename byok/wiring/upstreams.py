"""Build one upstream from its section of the settings."""

from byok.config import Settings, UpstreamSettings
from byok.config.values import AUTO
from byok.dialects.fim_mode import FimMode
from byok.dialects.presets import DEMO, PRESETS
from byok.dialects.quirks import quirks_of
from byok.dialects.registry import DIALECTS
from byok.keys.lookup import UpstreamKey
from byok.redact import Redactor
from byok.upstream.base import Upstream
from byok.upstream.client import HttpUpstream
from byok.upstream.context_window import Window, WindowedUpstream
from byok.upstream.demo import MODEL as DEMO_MODEL
from byok.upstream.demo import DemoUpstream
from byok.upstream.http_sender import UpstreamSpec
from byok.upstream.official import OfficialService
from byok.upstream.summaries import Summarise
from byok.upstream.timeouts import LOCAL, REMOTE
from byok.upstream.transport import Route, Transports
from byok.urls import is_loopback

_LOCAL_PAUSE, _REMOTE_PAUSE = 3.0, 30.0  # seconds an upstream is not asked once down


def base_url_of(settings: UpstreamSettings) -> str:
    """Return the base URL of an upstream, "" for the demo."""
    preset = PRESETS.get(settings.type)
    return settings.base_url or (preset.base_url if preset else "")


def models_of(section: UpstreamSettings) -> tuple[tuple[str, ...], str]:
    """Return the models listed in the settings, and the upstream's default model."""
    if section.type == DEMO:
        return (DEMO_MODEL,), DEMO_MODEL
    return tuple(section.models), section.model


def spec_of(name: str, settings: UpstreamSettings, common: Settings) -> UpstreamSpec:
    """Combine a section with the settings that are common to all upstreams."""
    chat, network, way = common.chat, common.network, common.completion.way
    base_url = base_url_of(settings)
    quirks = quirks_of(settings.type, base_url)
    local = is_loopback(base_url)
    proxy = "" if local else settings.proxy or network.proxy
    patience = LOCAL if local else REMOTE
    if settings.timeout:
        patience = patience.with_idle(settings.timeout)
    return UpstreamSpec(
        name=name,
        base_url=base_url,
        query=settings.query,
        dialect=DIALECTS[settings.dialect or "openai_chat"],
        quirks=quirks,
        timeouts=patience,
        # A local server may be started any moment: it is not left alone for long.
        breaker_pause=_LOCAL_PAUSE if local else _REMOTE_PAUSE,
        headers={**chat.headers, **settings.headers},
        extra_body={**chat.extra_body, **settings.extra_body},
        route=Route(proxy, settings.ca_file or network.ca_file),
        fim_modes=quirks.fim_modes if way == AUTO else (FimMode(way),),
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
    """Build the upstream of one section."""
    if settings.type == DEMO:
        return DemoUpstream(name)
    spec = spec_of(name, settings, common)
    http = HttpUpstream(spec, transports, key)
    reasoning = spec.quirks.wants_reasoning
    window = Window(settings.context_window, http.windows.of, reasoning)
    return WindowedUpstream(http, summarise, window)


def make_official(
    settings: Settings, transports: Transports, key: UpstreamKey, redactor: Redactor
) -> OfficialService:
    """Build the official service; without an address nothing is sent to it."""
    url, network = settings.routing.official.base_url, settings.network
    proxy = "" if is_loopback(url) else network.proxy
    route = Route(proxy, network.ca_file)
    return OfficialService(url, transports, key, redactor, route=route)
