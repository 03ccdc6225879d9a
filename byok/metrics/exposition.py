"""Prometheus' text format 0.0.4, written from names, labels and numbers."""

from collections.abc import Iterable, Mapping

from byok.metrics.histogram import Histogram
from byok.metrics.rows import Labels

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


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

    def add_facts(self, name: str, meaning: str, facts: Mapping[str, str]) -> None:
        """Add words as labels of a gauge that is always 1."""
        self.add(name, "gauge", meaning, tuple(facts), [(tuple(facts.values()), 1)])

    def encode(self) -> bytes:
        """Return the page."""
        return "".join(self._lines).encode()

    def _begin(self, name: str, kind: str, meaning: str) -> None:
        self._lines.append(f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n")

    def _write(
        self, name: str, pairs: Iterable[tuple[str, str]], number: float
    ) -> None:
        shown = ",".join(f'{key}="{text.translate(_ESCAPES)}"' for key, text in pairs)
        shown = f"{{{shown}}}" if shown else ""
        self._lines.append(f"{name}{shown} {number!r}\n")
