"""The page of all metrics, as Prometheus' own parser reads it."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from byok import __version__
from byok.core.code_query import IndexStatus, SearchMode
from byok.core.events import Usage
from byok.core.record import RequestRecord
from byok.features.base import Number
from byok.features.metrics.counts import LAG_SECONDS, Histogram, RequestMetrics
from byok.features.metrics.page import Exposition, Moment, write_page

LOST = Number("byok_journal_lost_total", "counter", "Lost requests.", 4)
INDEX = IndexStatus("ready", "", 7, SearchMode.AUTO, (), {"blobs": 5, "bytes_held": 99})


def samples_of(metrics: RequestMetrics, index: IndexStatus | None) -> dict[str, float]:
    moment = Moment(2, 3, [LOST], Histogram(LAG_SECONDS), index)
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
        pytest.param("plain", id="plain"),
        pytest.param('"} 1\nbyok_forged 7', id="forged sample"),
        pytest.param("back\\slash\\", id="backslash at the end"),
        pytest.param("\\n", id="backslash and n"),
        pytest.param("{a=\"b\",c='d'}", id="brackets"),
        pytest.param("模型 🦙", id="other scripts"),
        pytest.param("", id="empty"),
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
