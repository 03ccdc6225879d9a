"""Sends spans to a collector by OTLP over HTTP, in the thread that batches them.

The exporter of the SDK is not used: its HTTP library takes proxies and passwords from
the environment, follows redirects and reads answers of any size.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

import httpx
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from byok import __version__
from byok.core.urls import is_loopback
from byok.upstream.transport import Route, tls_context

_log = logging.getLogger(__name__)
_SECONDS = 5.0  # of silence of a collector
_MOST_WAITING, _MOST_AT_ONCE = 1024, 256  # spans
_EVERY = 5000  # milliseconds between two batches
_PATH = "/v1/traces"


class Collector(SpanExporter):
    """Sends batches to one address; what it rejects is dropped."""

    def __init__(self, endpoint: str, headers: Mapping[str, str], route: Route) -> None:
        """Take a checked address; nothing is sent before the first batch.

        Raises:
            ConfigError: the CA file cannot be used.
        """
        whole = endpoint.rstrip("/")
        self._url = whole if whole.endswith(_PATH) else whole + _PATH
        self._headers = {**headers, "Content-Type": "application/x-protobuf"}
        self._client = httpx.Client(
            verify=tls_context(route.ca_file),
            proxy=None if is_loopback(endpoint) else route.proxy or None,
            trust_env=False,
            timeout=_SECONDS,
        )
        self._failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch; the body of the answer is not read."""
        body = encode_spans(spans).SerializeToString()
        try:
            with self._client.stream(
                "POST", self._url, content=body, headers=self._headers
            ) as answer:
                why = "" if answer.is_success else f"status {answer.status_code}"
        except httpx.HTTPError as error:
            why = type(error).__name__
        self._tell(why)
        return SpanExportResult.FAILURE if why else SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Close the connection."""
        self._client.close()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Do nothing: whatever comes is sent at once."""
        return True

    def _tell(self, why: str) -> None:
        """Log the first failure of several, and never the address or its headers."""
        if why and not self._failing:
            host = urlsplit(self._url).hostname
            _log.warning("spans cannot be sent to %s: %s", host, why)
        self._failing = bool(why)


def open_provider(exporter: SpanExporter) -> tuple[TracerProvider, Callable[[], None]]:
    """Return what makes spans, and what sends the rest and ends; nothing is global."""
    resource = Resource({"service.name": "byok", "service.version": __version__})
    provider = TracerProvider(ALWAYS_ON, resource, shutdown_on_exit=False)
    provider.add_span_processor(
        BatchSpanProcessor(exporter, _MOST_WAITING, _EVERY, _MOST_AT_ONCE, 30_000)
    )
    return provider, provider.shutdown
