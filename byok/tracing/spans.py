"""A span of each request to a model, as an observer; off unless a collector is set."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from byok.errors import ConfigError
from byok.journal.cost import PriceOf, cost_of
from byok.record import RequestRecord

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

    from byok.upstream.transport import Route

_LAST_SECONDS = 3.0  # for spans that were not sent when the daemon ends


class SpanTarget(NamedTuple):
    """Where spans go; without an endpoint nowhere."""

    endpoint: str
    headers: tuple[tuple[str, str], ...]
    route: "Route"


class Spans:
    """Observer that makes spans; a thread of OpenTelemetry's SDK sends them."""

    def __init__(
        self,
        hide: Callable[[str], str] = str,
        *,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Take what removes secrets from names."""
        self._hide = hide
        self._clock_ns = clock_ns
        self._target: SpanTarget | None = None
        self._tracer: Tracer | None = None
        self._end: Callable[[], None] | None = None
        self._presets: Mapping[str, str] = {}
        self._price_of: PriceOf | None = None

    def configure(
        self, target: SpanTarget, presets: Mapping[str, str], price_of: PriceOf
    ) -> None:
        """Send spans there from now on; `presets` are those of the upstreams.

        Raises:
            ConfigError: OpenTelemetry is not installed, or the CA file cannot be used.
        """
        self._presets, self._price_of = presets, price_of
        if target == self._target:
            return
        tracer, end = _open(target) if target.endpoint else (None, None)
        self._leave()
        self._target, self._tracer, self._end = target, tracer, end

    def request_started(self, record: RequestRecord, /) -> None:
        """Do nothing until the request ends."""

    def request_finished(self, record: RequestRecord, /) -> None:
        """Make the span of a request of a client that asked a model."""
        if self._tracer is None or not record.attempts or not record.is_of_client:
            return
        from opentelemetry.trace import SpanKind, StatusCode

        from byok.tracing.attributes import attributes_of, error_type, span_name

        now = self._clock_ns()
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
        """Send what is left; blocks for seconds at most."""
        if sender := self._leave():
            sender.join(_LAST_SECONDS)

    def _leave(self) -> threading.Thread | None:
        """Send the last spans in a thread: a dead collector delays nobody."""
        end, self._end, self._tracer, self._target = self._end, None, None, None
        if end is None:
            return None
        sender = threading.Thread(target=end, name="last spans", daemon=True)
        sender.start()
        return sender


def _open(target: SpanTarget) -> tuple["Tracer", Callable[[], None]]:
    try:
        from byok.tracing.collector import Collector, open_provider
    except ImportError as error:
        raise ConfigError(
            "[otel] needs OpenTelemetry's SDK, which is not installed.",
            hint="Run: byok upgrade --extra otel",
        ) from error
    collector = Collector(target.endpoint, dict(target.headers), target.route)
    provider, end = open_provider(collector)
    return provider.get_tracer("byok"), end
