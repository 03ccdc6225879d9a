"""What requests and the event loop add to the metrics."""

import asyncio
import time
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from byok import __version__
from byok.core.chat import Json
from byok.core.code_query import IndexStatus, SearchMode
from byok.core.events import Usage
from byok.core.record import RequestRecord
from byok.core.redact import Redactor
from byok.dialects.model_facts import Price
from byok.features.base import Number
from byok.features.metrics.counts import (
    LAG_SECONDS,
    Count,
    Histogram,
    RequestMetrics,
    Rows,
)
from byok.features.metrics.feature import LoopLag
from byok.features.metrics.page import Exposition, Snapshot, write_page
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


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\nb", "a\\nb"),
        ("a\r\x1b[31m", "a\\r\\x1b[31m"),
        ("\ud800", "\\ud800"),
        ("\u2028\u202e", "\\u2028\\u202e"),
        ("m" * 10**6, "m" * 120),
        ("sk-" + "x" * 40, "[redacted]"),
    ],
)
def test_labels_are_short_and_show_everything_but_keys(name: str, shown: str) -> None:
    rows = Rows(Count, Redactor())
    rows.find((name,))
    assert [labels for labels, _ in rows] == [(shown,)]


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
        while not lag.histogram.total:
            await asyncio.sleep(0)
    assert lag.histogram.total >= 0.04
    lag.stop()
    counted = [*lag.histogram.buckets()]
    await asyncio.sleep(0.01)
    assert [*lag.histogram.buckets()] == counted
    lag.stop()


LOST = Number("byok_journal_lost_total", "counter", "Lost requests.", 4)
INDEX = IndexStatus("ready", "", 7, SearchMode.AUTO, (), {"blobs": 5, "bytes_held": 99})


def samples_of(metrics: RequestMetrics, index: IndexStatus | None) -> dict[str, float]:
    moment = Snapshot(2, 3, [LOST], Histogram(LAG_SECONDS), index)
    text = write_page(metrics, moment, 1_700_000_000.0).decode()
    families = [*text_string_to_metric_families(text)]
    names = [family.name for family in families]
    assert len(names) == len({*names})
    assert all(family.type != "unknown" for family in families)
    assert all(family.documentation for family in families)
    found: dict[str, float] = {}
    for family in families:
        for sample in family.samples:
            labels = ",".join(f"{k}={v}" for k, v in sample.labels.items())
            key = f"{sample.name}{{{labels}}}"
            assert key not in found
            found[key] = sample.value
    return found


def test_everything_is_on_the_page_once() -> None:
    metrics = RequestMetrics()
    metrics.on = True
    record = RequestRecord("r", endpoint="/chat")
    record.upstream, record.model, record.attempts = "one", 'm"\n\\', 1
    record.usage, record.repairs, record.notices = Usage(100, 10, 60), 1, 2
    record.first_byte, record.error, record.error_class = 0.2, "broken", "ByokError"
    metrics.start(record)
    record.finish(200)
    metrics.finish(record)
    found = samples_of(metrics, INDEX)
    model = 'upstream=one,model=m"\\n\\'
    expected = {
        "process_start_time_seconds{}": 1_700_000_000.0,
        f"byok_requests_total{{endpoint=/chat,outcome=failed,{model}}}": 1,
        "byok_request_errors_total{upstream=one,class=ByokError,code=broken}": 1,
        f"byok_upstream_attempts_total{{{model}}}": 1,
        f"byok_requests_without_cost_total{{{model}}}": 1,
        f"byok_tool_call_repairs_total{{{model}}}": 1,
        f"byok_dropped_tool_calls_total{{{model}}}": 0,
        f"byok_notices_total{{{model}}}": 2,
        f"byok_tokens_total{{{model},kind=input}}": 100,
        f"byok_tokens_total{{{model},kind=cache_read}}": 60,
        f"byok_first_byte_seconds_sum{{{model}}}": 0.2,
        "byok_request_seconds_count{endpoint=/chat}": 1,
        "byok_open_requests{}": 0,
        "byok_open_answers{}": 2,
        "byok_waiting_requests{}": 3,
        "byok_journal_lost_total{}": 4,
        "byok_index_up{}": 1,
        "byok_index_waiting_tasks{}": 7,
        "byok_index_blobs{}": 5,
        "byok_index_held_bytes{}": 99,
    }
    assert {key: found.get(key) for key in expected} == expected
    assert any(__version__ in key for key in found if key.startswith("byok_build"))
    assert found["process_cpu_seconds_total{}"] > 0


def test_an_index_that_does_not_answer_is_said_to_be_down() -> None:
    found = samples_of(RequestMetrics(), None)
    assert found["byok_index_up{}"] == 0
    assert not any(key.startswith("byok_index_b") for key in found)


@pytest.mark.parametrize(
    "value",
    [
        "plain",
        '"} 1\nbyok_forged 7',
        "slash\\",
        "\\n",
        "{a=\"b\",c='d'}",
        "模型 🦙",
        "",
    ],
)
def test_a_label_comes_back_as_it_was(value: str) -> None:
    page = Exposition()
    page.add("byok_a_total", "counter", "Some.", ("m", "n"), [((value, "x"), 3)])
    [family] = text_string_to_metric_families(page.encode().decode())
    [sample] = family.samples
    assert (sample.name, sample.labels, sample.value) == (
        "byok_a_total", {"m": value, "n": "x"}, 3,
    )  # fmt: skip


def test_a_histogram_is_cumulative_with_sum_and_count() -> None:
    histogram = Histogram((0.5, 1))
    for value in (0.25, 0.75, 4):
        histogram.add(value)
    page = Exposition()
    page.add_histogram("byok_s", "Times.", ("m",), [(("a",), histogram)])
    [family] = text_string_to_metric_families(page.encode().decode())
    assert family.type == "histogram"
    assert [(s.name, s.labels.get("le"), s.value) for s in family.samples] == [
        ("byok_s_bucket", "0.5", 1),
        ("byok_s_bucket", "1", 2),
        ("byok_s_bucket", "+Inf", 3),
        ("byok_s_sum", None, 5),
        ("byok_s_count", None, 3),
    ]


def test_large_numbers_are_exact() -> None:
    page = Exposition()
    page.add_one("byok_big_total", "counter", "Large.", 10**15 + 1)
    assert page.encode().endswith(b"byok_big_total 1000000000000001\n")
