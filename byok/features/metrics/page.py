"""The page of all metrics, in Prometheus' text format 0.0.4."""

import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from byok import __version__
from byok.core.code_query import IndexStatus
from byok.features.base import Number
from byok.features.metrics.counts import (
    Histogram,
    Labels,
    ModelNumbers,
    RequestMetrics,
)

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_MODEL = ("upstream", "model")
# Name, meaning, and a function that returns the value from the numbers of a model.
_MODEL_COUNTERS: tuple[tuple[str, str, Callable[[ModelNumbers], float]], ...] = (
    ("byok_upstream_attempts_total", "Requests to upstreams, with repetitions.",
     lambda row: row.attempts),
    ("byok_cost_usd_total", "Cost of requests whose prices and tokens are known.",
     lambda row: row.cost),
    ("byok_requests_without_cost_total", "Requests whose cost is not known.",
     lambda row: row.without_cost),
    ("byok_tool_call_repairs_total", "Tool calls that byok repaired.",
     lambda row: row.repairs),
    ("byok_dropped_tool_calls_total", "Tool calls that byok did not pass on.",
     lambda row: row.dropped_calls),
    ("byok_notices_total", "Sentences that byok added to answers.",
     lambda row: row.notices),
)  # fmt: skip
_TOKENS: tuple[tuple[str, Callable[[ModelNumbers], int]], ...] = (
    ("input", lambda row: row.input_tokens),
    ("output", lambda row: row.output_tokens),
    ("cache_read", lambda row: row.cache_read_tokens),
    ("cache_write", lambda row: row.cache_written_tokens),
)
_TOTALS = (
    ("blobs", "byok_index_blobs", "Versions of files that are known."),
    ("blobs_held", "byok_index_blobs_held", "Versions whose content is stored."),
    ("bytes_held", "byok_index_held_bytes", "Bytes of the stored contents."),
    ("checkpoints", "byok_index_checkpoints", "Stored sets of blobs."),
    ("chunks", "byok_index_chunks", "Chunks of code that can be searched."),
)


class Exposition:
    """A page of metrics; each name is added once."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(
        self,
        name: str,
        kind: str,
        meaning: str,
        labels: Labels,
        samples: Iterable[tuple[Labels, float]],
    ) -> None:
        """Add a counter or gauge with its values by those of the labels."""
        self._begin(name, kind, meaning)
        for values, number in samples:
            self._write(name, zip(labels, values, strict=True), number)

    def add_one(self, name: str, kind: str, meaning: str, number: float) -> None:
        """Add a counter or gauge without labels."""
        self.add(name, kind, meaning, (), [((), number)])

    def add_histogram(
        self,
        name: str,
        meaning: str,
        labels: Labels,
        samples: Iterable[tuple[Labels, Histogram]],
    ) -> None:
        """Add a histogram with its values by those of the labels."""
        self._begin(name, "histogram", meaning)
        for values, histogram in samples:
            pairs, count = [*zip(labels, values, strict=True)], 0
            for bound, count in histogram.buckets():
                self._write(f"{name}_bucket", [*pairs, ("le", bound)], count)
            self._write(f"{name}_sum", pairs, histogram.total)
            self._write(f"{name}_count", pairs, count)

    def encode(self) -> bytes:
        """Return the page."""
        return "".join(self._lines).encode()

    def _begin(self, name: str, kind: str, meaning: str) -> None:
        self._lines.append(f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n")

    def _write(
        self, name: str, pairs: Iterable[tuple[str, str]], number: float
    ) -> None:
        labels = ",".join(f'{key}="{text.translate(_ESCAPES)}"' for key, text in pairs)
        labels = f"{{{labels}}}" if labels else ""
        self._lines.append(f"{name}{labels} {number!r}\n")


class Snapshot(NamedTuple):
    """Current values; `numbers` are those of other features.

    `code_index` is None if it did not answer.
    """

    open_answers: int
    waiting: int
    numbers: Sequence[Number]
    lag: Histogram
    code_index: IndexStatus | None


def write_page(metrics: RequestMetrics, snapshot: Snapshot, started: float) -> bytes:
    """Write the page; `started`, the daemon's start, is in seconds since 1970."""
    page = Exposition()
    _add_process(page, started)
    _add_requests(page, metrics)
    _add_models(page, metrics)
    page.add_one(
        "byok_open_requests", "gauge", "Requests that are not ended.", metrics.open
    )
    page.add_one(
        "byok_open_answers", "gauge", "Answers in progress.", snapshot.open_answers
    )
    page.add_one(
        "byok_waiting_requests", "gauge", "Requests that wait for a place.",
        snapshot.waiting,
    )  # fmt: skip
    for number in snapshot.numbers:
        page.add_one(*number)
    page.add_histogram(
        "byok_loop_lag_seconds", "How late the event loop was, once a second.", (),
        [((), snapshot.lag)],
    )  # fmt: skip
    _add_index(page, snapshot.code_index)
    return page.encode()


def _add_process(page: Exposition, started: float) -> None:
    page.add(
        "byok_build_info", "gauge", "The version of byok and of Python.",
        ("version", "python"), [((__version__, platform.python_version()), 1)],
    )  # fmt: skip
    page.add_one(
        "process_start_time_seconds", "gauge", "Start in seconds since 1970.", started
    )
    page.add_one(
        "process_cpu_seconds_total", "counter", "CPU time of the daemon itself.",
        time.process_time(),
    )  # fmt: skip
    if (resident := _resident_bytes()) is not None:
        page.add_one(
            "process_resident_memory_bytes", "gauge", "Resident memory.", resident
        )


def _resident_bytes() -> int | None:
    """Return the memory of this process, None if the system does not report it."""
    try:
        pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    except OSError:
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _add_requests(page: Exposition, metrics: RequestMetrics) -> None:
    page.add(
        "byok_requests_total", "counter", "Requests that ended.",
        ("endpoint", "outcome", "upstream", "model"),
        ((labels, row.times) for labels, row in metrics.requests),
    )  # fmt: skip
    page.add(
        "byok_request_errors_total", "counter", "Requests that failed.",
        ("upstream", "class", "code"),
        ((labels, row.times) for labels, row in metrics.errors),
    )  # fmt: skip
    page.add_histogram(
        "byok_request_seconds", "How long requests took to their end.",
        ("endpoint",), metrics.seconds,
    )  # fmt: skip


def _add_models(page: Exposition, metrics: RequestMetrics) -> None:
    models = [*metrics.models]
    for name, meaning, number in _MODEL_COUNTERS:
        samples = ((labels, number(row)) for labels, row in models)
        page.add(name, "counter", meaning, _MODEL, samples)
    page.add(
        "byok_tokens_total", "counter",
        "Tokens as upstreams count them; the input includes the cache.",
        (*_MODEL, "kind"),
        (((*labels, kind), of(row)) for labels, row in models for kind, of in _TOKENS),
    )  # fmt: skip
    page.add_histogram(
        "byok_first_byte_seconds", "How long upstreams took to begin an answer.",
        _MODEL, ((labels, row.first_byte) for labels, row in models),
    )  # fmt: skip


def _add_index(page: Exposition, index: IndexStatus | None) -> None:
    is_up = 0 if index is None else 1
    page.add_one("byok_index_up", "gauge", "1 if the code index answered.", is_up)
    if index is None:
        return
    page.add_one(
        "byok_index_waiting_tasks", "gauge", "Files to be indexed.", index.waiting
    )
    page.add_one(
        "byok_index_workspaces", "gauge", "Folders that are followed.",
        len(index.workspaces),
    )  # fmt: skip
    for key, name, meaning in _TOTALS:
        if key in index.totals:
            page.add_one(name, "gauge", meaning, index.totals[key])
