"""Counts of requests: rows of numbers by labels, and histograms of durations.

Names of models come from clients and upstreams: a hostile name may be long, contain a
key or control characters, and be another one in every request. So the number of rows is
limited.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct, field

from byok.core.escapes import escape
from byok.core.events import Usage
from byok.core.record import RequestRecord
from byok.features.cost import PriceOf, cost_of, no_price
from byok.features.journal.entry import in_bounds

MOST_ROWS = 200
OTHER = "other"
_MAX_LABEL_CHARS = 120
_MAX_NAME_CHARS = 1000  # of a name, before it is made a label

Labels: TypeAlias = tuple[str, ...]
Row = TypeVar("Row")
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
        """Yield each bound, `+Inf` last, with the number of values up to it."""
        total = 0
        bounds = [*map(str, self._bounds), "+Inf"]
        for bound, count in zip(bounds, self._counts, strict=True):
            total += count
            yield bound, total


class Rows(Generic[Row]):
    """One row for each combination of labels; those beyond the limit share `other`.

    `make` makes an empty row, `hide` removes secrets from a label.
    """

    def __init__(
        self, make: Callable[[], Row], hide: Callable[[str], str] = str
    ) -> None:
        self._make = make
        self._hide = hide
        self._by_key: dict[Labels, Row] = {}
        self._by_labels: dict[Labels, Row] = {}

    def find(self, key: Labels) -> Row:
        """Return the row of these names, which are those of clients and upstreams."""
        row = self._by_key.get(key)
        return self._find_short(key) if row is None else row

    def __iter__(self) -> Iterator[tuple[Labels, Row]]:
        """Yield each row with its labels, which are safe to show."""
        return iter(self._by_labels.items())

    def _find_short(self, key: Labels) -> Row:
        short = tuple(name[:_MAX_NAME_CHARS] for name in key)
        if (row := self._by_key.get(short)) is not None:
            return row
        if len(self._by_key) >= MOST_ROWS - 1:
            return self._row_of((OTHER,) * len(key))
        # Two names may look the same once their secrets are hidden.
        row = self._row_of(tuple(map(self._label, short)))
        self._by_key[short] = row
        return row

    def _row_of(self, labels: Labels) -> Row:
        if (row := self._by_labels.get(labels)) is None:
            row = self._by_labels[labels] = self._make()
        return row

    def _label(self, name: str) -> str:
        return escape(self._hide(name))[:_MAX_LABEL_CHARS]


class Count(Struct):
    """A count of events."""

    times: int = 0


class ModelNumbers(Struct):
    """The numbers of one model; `cost` is in US dollars, as far as it is known."""

    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_written_tokens: int = 0
    cost: float = 0.0
    without_cost: int = 0
    repairs: int = 0
    dropped_calls: int = 0
    notices: int = 0
    first_byte: Histogram = field(default_factory=Histogram)

    def add_usage(self, usage: Usage) -> None:
        """Add the tokens of one question."""
        self.input_tokens += in_bounds(usage.input_tokens)
        self.output_tokens += in_bounds(usage.output_tokens)
        self.cache_read_tokens += in_bounds(usage.cache_read_tokens)
        self.cache_written_tokens += in_bounds(usage.cache_creation_tokens)


class RequestMetrics:
    """Counts every request while it is `on`.

    `requests` are by endpoint, outcome, upstream and model, `seconds` by endpoint,
    `models` by upstream and model, `errors` by upstream, class and code.
    """

    def __init__(self, hide: Callable[[str], str] = str) -> None:
        self.on = False
        self.price_of: PriceOf = no_price
        self.open = 0
        self.requests = Rows(Count, hide)
        self.seconds = Rows(Histogram, hide)
        self.models = Rows(ModelNumbers, hide)
        self.errors = Rows(Count, hide)

    def start(self, record: RequestRecord) -> None:
        """Count an open request; also while off, or `open` might fall below zero."""
        self.open += 1

    def finish(self, record: RequestRecord) -> None:
        """Count the facts of a request."""
        self.open -= 1
        if not self.on:
            return
        endpoint, upstream, model = record.endpoint, record.upstream, record.model
        self.requests.find((endpoint, record.outcome, upstream, model)).times += 1
        self.seconds.find((endpoint,)).add(record.seconds)
        if record.attempts:
            self._add_answer(record, self.models.find((upstream, model)))
        if record.error:
            self.errors.find((upstream, record.error_class, record.error)).times += 1

    def _add_answer(self, record: RequestRecord, row: ModelNumbers) -> None:
        row.attempts += record.attempts
        row.repairs += record.repairs
        row.dropped_calls += record.dropped_calls
        row.notices += record.notices
        if record.first_byte is not None:
            row.first_byte.add(record.first_byte)
        if record.usage is not None:
            row.add_usage(record.usage)
        for model, usage in (record.own_usage or {}).items():
            self.models.find(model).add_usage(usage)
        cost = cost_of(record, self.price_of)
        if cost is None:
            row.without_cost += 1
        else:
            row.cost += max(0.0, cost)
