"""The text format, as Prometheus' own parser reads it."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from byok.features.metrics.counts import Histogram
from byok.features.metrics.page import Exposition


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
