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
_TIMEOUT = 5.0  # seconds
_MAX_QUEUED, _MAX_BATCH = 1024, 256  # spans
_BATCH_MILLISECONDS = 5000  # between two batches
_SEND_MILLISECONDS = 30_000
_PATH = "/v1/traces"


class Collector(SpanExporter):
    """Sends batches to one address; what it rejects is dropped."""

    def __init__(self, endpoint: str, headers: Mapping[str, str], route: Route) -> None:
        """Set up for a valid address; the first batch opens the connection.

        Raises:
            ConfigError: the CA file cannot be used.
        """
        url = endpoint.rstrip("/")
        self._url = url if url.endswith(_PATH) else url + _PATH
        self._headers = {**headers, "Content-Type": "application/x-protobuf"}
        self._client = httpx.Client(
            verify=tls_context(route.ca_file),
            proxy=None if is_loopback(endpoint) else route.proxy or None,
            trust_env=False,
            timeout=_TIMEOUT,
        )
        self._is_failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch; the body of the answer is not read."""
        body = encode_spans(spans).SerializeToString()
        try:
            with self._client.stream(
                "POST", self._url, content=body, headers=self._headers
            ) as answer:
                reason = "" if answer.is_success else f"status {answer.status_code}"
        except httpx.HTTPError as error:
            reason = type(error).__name__
        self._log_failure(reason)
        return SpanExportResult.FAILURE if reason else SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Close the connection."""
        self._client.close()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Do nothing: a batch is sent at once."""
        return True

    def _log_failure(self, reason: str) -> None:
        """Log the first failure of several, and never the address or its headers."""
        if reason and not self._is_failing:
            host = urlsplit(self._url).hostname
            _log.warning("spans cannot be sent to %s: %s", host, reason)
        self._is_failing = bool(reason)


def open_provider(exporter: SpanExporter) -> tuple[TracerProvider, Callable[[], None]]:
    """Return a provider, which is not global, and the function that shuts it down."""
    resource = Resource({"service.name": "byok", "service.version": __version__})
    provider = TracerProvider(ALWAYS_ON, resource, shutdown_on_exit=False)
    provider.add_span_processor(
        BatchSpanProcessor(
            exporter, _MAX_QUEUED, _BATCH_MILLISECONDS, _MAX_BATCH, _SEND_MILLISECONDS
        )
    )
    return provider, provider.shutdown
