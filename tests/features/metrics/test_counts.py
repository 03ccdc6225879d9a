"""What requests and the event loop add to the metrics."""

import asyncio
import time
from typing import Any

import pytest

from byok.core.chat import Json
from byok.core.events import Usage
from byok.core.record import RequestRecord
from byok.core.redact import Redactor
from byok.dialects.model_facts import Price
from byok.features.metrics.counts import Count, RequestMetrics, Rows
from byok.features.metrics.feature import LoopLag
from tests.fakes.clock import Clock
from tests.fakes.patience import PATIENCE


def finish(metrics: RequestMetrics, status: int = 200, **fields: Any) -> None:
    record = RequestRecord("r", endpoint="/chat-stream", clock=Clock())
    metrics.start(record)
    for name, value in fields.items():
        setattr(record, name, value)
    record.finish(status)
    metrics.finish(record)


@pytest.fixture
def metrics() -> RequestMetrics:
    metrics = RequestMetrics()
    metrics.on = True
    return metrics


def test_requests_count_by_endpoint_outcome_and_model(metrics: RequestMetrics) -> None:
    finish(metrics, upstream="one", model="m", attempts=1)
    finish(metrics, upstream="one", model="m", attempts=3)
    finish(metrics, 499, upstream="one", model="m", attempts=1)
    finish(metrics, 502, error="upstream_refused", error_class="UpstreamRefused")
    assert {labels: row.times for labels, row in metrics.requests} == {
        ("/chat-stream", "ok", "one", "m"): 2,
        ("/chat-stream", "cancelled", "one", "m"): 1,
        ("/chat-stream", "failed", "", ""): 1,
    }
    assert {labels: row.times for labels, row in metrics.errors} == {
        ("", "UpstreamRefused", "upstream_refused"): 1
    }
    [(_, row)] = metrics.models
    assert row.attempts == 5


def test_tokens_are_those_of_the_model_that_told_them(metrics: RequestMetrics) -> None:
    asked: Json = {"upstream": "one", "model": "m", "attempts": 2, "first_byte": 0.3}
    own = {("two", "small"): Usage(50, 5)}
    finish(metrics, **asked, usage=Usage(100, 10, 60, 20), own_usage=own)
    rows = dict(metrics.models)
    large, small = rows["one", "m"], rows["two", "small"]
    assert (large.input_tokens, large.output_tokens) == (100, 10)
    assert (large.cache_read_tokens, large.cache_written_tokens) == (60, 20)
    assert (small.input_tokens, small.output_tokens, small.attempts) == (50, 5, 0)
    assert large.first_byte.total == 0.3


def test_a_cost_is_known_or_counted_as_unknown(metrics: RequestMetrics) -> None:
    asked: Json = {
        "upstream": "one",
        "model": "m",
        "attempts": 1,
        "usage": Usage(2_000_000),
    }
    finish(metrics, **asked)
    metrics.price_of = lambda upstream, model: Price(input=1.5)
    finish(metrics, **asked)
    [(_, row)] = metrics.models
    assert (row.cost, row.without_cost) == (3.0, 1)


@pytest.mark.parametrize(
    ("told", "counted"), [(-5, 0), (10**30, 10**12)], ids=["below zero", "huge"]
)
def test_absurd_tokens_stay_within_bounds(
    metrics: RequestMetrics, told: int, counted: int
) -> None:
    finish(metrics, upstream="one", model="m", attempts=1, usage=Usage(told, told))
    [(_, row)] = metrics.models
    assert (row.input_tokens, row.output_tokens) == (counted, counted)


def test_nothing_but_open_requests_is_counted_while_off() -> None:
    metrics = RequestMetrics()
    record = RequestRecord("r", endpoint="/chat")
    metrics.start(record)
    assert metrics.open == 1
    record.finish(200)
    metrics.finish(record)
    assert (metrics.open, [*metrics.requests]) == (0, [])


def test_hostile_models_fill_no_memory(metrics: RequestMetrics) -> None:
    for number in range(1000):
        code = f"e{number}"
        finish(metrics, upstream="one", model=f"m{number}", attempts=1, error=code)
    tables = (metrics.requests, metrics.models, metrics.errors)
    assert [len([*table]) for table in tables] == [200, 200, 200]


def labels_of(rows: Rows[Count]) -> list[tuple[str, ...]]:
    return [labels for labels, _ in rows]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("a\nb", "a\\nb", id="line end"),
        pytest.param("a\r\x1b[31m", "a\\r\\x1b[31m", id="terminal controls"),
        pytest.param("\ud800", "\\ud800", id="half a character"),
        pytest.param("\u2028\u202e", "\\u2028\\u202e", id="order and lines"),
        pytest.param("m" * 10**6, "m" * 120, id="long"),
        pytest.param("sk-" + "x" * 40, "[redacted]", id="a key"),
    ],
)
def test_labels_are_short_and_show_everything_but_keys(name: str, shown: str) -> None:
    rows = Rows(Count, Redactor())
    rows.find((name,))
    assert labels_of(rows) == [(shown,)]


def test_names_that_look_the_same_when_cut_are_one_row() -> None:
    rows = Rows(Count, Redactor())
    for letter in "abc":
        rows.find(("sk-" + letter * 40,)).times += 1
        rows.find(("m" * 2000 + letter,)).times += 1
    assert {labels: row.times for labels, row in rows} == {
        ("[redacted]",): 3,
        ("m" * 120,): 3,
    }


async def test_a_blocked_loop_shows_and_stop_ends_it() -> None:
    lag = LoopLag(every=0.001)
    lag.start()
    lag.start()  # as after a reload
    time.sleep(0.05)
    async with asyncio.timeout(PATIENCE):
        while not lag.seen.total:
            await asyncio.sleep(0)
    assert lag.seen.total >= 0.04
    lag.stop()
    counted = [*lag.seen.buckets()]
    await asyncio.sleep(0.01)
    assert [*lag.seen.buckets()] == counted
    lag.stop()
