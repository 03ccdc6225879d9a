"""Where spans of requests go, as the settings say."""

from byok.dialects.presets import find_preset
from byok.tracing.spans import Spans, SpanTarget
from byok.upstream.transport import Route
from byok.wiring.apis import base_url_of
from byok.wiring.services import Services


def configure_spans(spans: Spans, services: Services) -> None:
    """Let spans be sent as the settings in force want it.

    Raises:
        ConfigError: OpenTelemetry is not installed, or the CA file cannot be used.
    """
    settings = services.settings
    network, headers = settings.network, settings.otel.headers
    route = Route(network.proxy, network.ca_file)
    target = SpanTarget(settings.otel.endpoint, tuple(headers.items()), route)
    presets = {
        name: find_preset(section.type, base_url_of(section)) or name
        for name, section in services.selection.upstreams.items()
    }
    spans.configure(target, presets, services.catalog.price_of)
