"""Histograms: bounds are inclusive, counts add up."""

from byok.features.metrics.counts import Histogram


def test_values_are_counted_up_to_each_bound() -> None:
    histogram = Histogram((0.5, 1))
    for value in (0.0, 0.5, 0.75, 1, 1.25, 1e9):
        histogram.add(value)
    assert [*histogram.buckets()] == [("0.5", 2), ("1", 4), ("+Inf", 6)]
    assert histogram.total == 1_000_000_003.5
