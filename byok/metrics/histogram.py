"""A histogram of durations."""

from bisect import bisect_left
from collections.abc import Iterator

SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
LAG_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5)


class Histogram:
    """Counts values by upper bounds; `total` is their sum."""

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def buckets(self) -> Iterator[tuple[str, int]]:
        """Give each bound, `+Inf` last, with how many values do not exceed it."""
        so_far = 0
        bounds = [*map(str, self._bounds), "+Inf"]
        for bound, count in zip(bounds, self._counts, strict=True):
            so_far += count
            yield bound, so_far
