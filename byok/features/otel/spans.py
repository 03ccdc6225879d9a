"""Makes a span of each request to a model; off unless a collector is set.

The attributes are OpenTelemetry's for generative AI, never content. Their names are
those of the semantic conventions after 1.36 (`gen_ai.provider.name`); names that these
do not have begin with `byok.`.
"""

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from byok.core.escapes import escape
from byok.core.events import Usage
from byok.core.platform.process import explain_import
from byok.core.record import RequestOutcome, RequestRecord
from byok.dialects.presets import preset_of
from byok.features.base import Feature, Site, Supplies
from byok.features.cost import PriceOf, cost_of
from byok.features.otel.settings import OtelSettings
from byok.settings.sections import NetworkSettings

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

_CLOSE_SECONDS = 3.0  # for pending spans when the daemon ends
_MAX_LABEL_CHARS, _MAX_TEXT_CHARS = 200, 1000  # of a label; of the text before
_MAX_TOKENS = 10**12
_OPERATIONS = {
    "/v1/embeddings": "embeddings",
    "/v1/completions": "text_completion",
    "/completion": "text_completion",
}
Attributes: TypeAlias = dict[str, str | int | float]


class Spans(Feature):
    """Makes spans; a thread of OpenTelemetry's SDK sends them."""

    def __init__(self, site: Site) -> None:
        self._hide = site.redactor
        self._clock = site.clock
        self._target: tuple[OtelSettings, NetworkSettings] | None = None
        self._tracer: Tracer | None = None
        self._end: Callable[[], None] | None = None
        self._presets: Mapping[str, str] = {}
        self._price_of: PriceOf | None = None

    def configure(self, supplies: Supplies, /) -> None:
        """Send spans to the collector of the settings from now on.

        Raises:
            ConfigError: OpenTelemetry is not installed, or the CA file cannot be used.
        """
        self._presets, self._price_of = supplies.presets, supplies.price_of
        section = supplies.settings.section(OtelSettings)
        target = section, supplies.settings.network
        if target == self._target:
            return
        tracer, end = _open_tracer(*target) if section.endpoint else (None, None)
        self._shut_down()
        self._target, self._tracer, self._end = target, tracer, end

    def request_finished(self, record: RequestRecord, /) -> None:
        """Make the span of a request of a client that asked a model."""
        if self._tracer is None or not record.attempts or not record.is_of_client:
            return
        from opentelemetry.trace import SpanKind, StatusCode

        now = round(self._clock() * 1e9)
        cost = cost_of(record, self._price_of) if self._price_of else None
        span = self._tracer.start_span(
            span_name(record, self._hide),
            kind=SpanKind.CLIENT,
            attributes=attributes_of(record, self._presets, cost, self._hide),
            start_time=now - round(record.seconds * 1e9),
        )
        if error_type(record):
            span.set_status(StatusCode.ERROR)
        span.end(now)

    def close(self) -> None:
        """Send pending spans; blocks for seconds at most."""
        if sender := self._shut_down():
            sender.join(_CLOSE_SECONDS)

    def _shut_down(self) -> threading.Thread | None:
        """Send pending spans in a thread, so that a dead collector blocks nothing."""
        end, self._end, self._tracer, self._target = self._end, None, None, None
        if end is None:
            return None
        sender = threading.Thread(target=end, name="last spans", daemon=True)
        sender.start()
        return sender


def _open_tracer(
    section: OtelSettings, network: NetworkSettings
) -> tuple["Tracer", Callable[[], None]]:
    from byok.upstream.transport import Route

    try:
        from byok.features.otel.collector import Collector, open_provider
    except ImportError as error:
        raise explain_import(
            error,
            "[otel] needs OpenTelemetry's SDK, which is not installed.",
            hint="Run: byok upgrade --extra otel",
        ) from error
    route = Route(network.proxy, network.ca_file)
    collector = Collector(section.endpoint, section.headers, route)
    provider, end = open_provider(collector)
    return provider.get_tracer("byok"), end


def span_name(record: RequestRecord, hide: Callable[[str], str]) -> str:
    """Return the name of a request's span: the operation and the model."""
    return f"{_operation(record)} {_label(record.model, hide)}".rstrip()


def attributes_of(
    record: RequestRecord,
    presets: Mapping[str, str],
    cost: float | None,
    hide: Callable[[str], str],
) -> Attributes:
    """Return the attributes of a request that has ended.

    `presets` are the presets of the upstreams by name, `cost` is in US dollars, `hide`
    removes secrets.
    """
    preset = presets.get(record.upstream, record.upstream)
    attributes: Attributes = {
        "gen_ai.operation.name": _operation(record),
        "gen_ai.provider.name": preset_of(preset).otel or preset,
        "gen_ai.request.model": record.model,
        "gen_ai.conversation.id": record.conversation,
        "byok.upstream": record.upstream,
        "byok.endpoint": record.endpoint,
        "byok.purpose": record.purpose,
        "byok.client": record.client,
        "byok.request_id": record.request_id,
        "byok.attempts": record.attempts,
        "byok.repairs": record.repairs,
        "byok.dropped_calls": record.dropped_calls,
        "byok.notices": record.notices,
        "byok.status": record.status,
        "error.type": error_type(record),
    }
    if record.first_byte is not None:
        attributes["gen_ai.response.time_to_first_chunk"] = record.first_byte
    if cost is not None:
        attributes["byok.cost_usd"] = cost
    if usage := record.total_usage:
        attributes |= _tokens(usage)
    return {
        name: _label(value, hide) if isinstance(value, str) else value
        for name, value in attributes.items()
        if value != ""
    }


def error_type(record: RequestRecord) -> str:
    """Return the code of a failure, or "cancelled", or "" for a success."""
    is_cancelled = record.outcome is RequestOutcome.CANCELLED
    return record.error or ("cancelled" if is_cancelled else "")


def _operation(record: RequestRecord) -> str:
    return _OPERATIONS.get(record.endpoint, "chat")


def _tokens(usage: Usage) -> Attributes:
    counts = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_creation_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    return {name: min(max(n, 0), _MAX_TOKENS) for name, n in counts.items()}


def _label(text: str, hide: Callable[[str], str]) -> str:
    return escape(hide(text[:_MAX_TEXT_CHARS]))[:_MAX_LABEL_CHARS]
