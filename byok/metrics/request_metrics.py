"""Counts requests and the usage of their answers, as an observer of their records."""

from collections.abc import Callable
from dataclasses import dataclass, field

from byok.events import Usage
from byok.journal.cost import PriceOf, cost_of, no_price
from byok.metrics.histogram import Histogram
from byok.metrics.rows import Rows
from byok.record import RequestRecord

_MOST_TOKENS = 10**12  # of one request: an upstream may tell anything


@dataclass(slots=True)
class Count:
    """How often something happened."""

    times: int = 0


@dataclass(slots=True)
class ModelNumbers:
    """What one model was asked and told; `cost` is in US dollars, as far as known."""

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
        self.input_tokens += _in_bounds(usage.input_tokens)
        self.output_tokens += _in_bounds(usage.output_tokens)
        self.cache_read_tokens += _in_bounds(usage.cache_read_tokens)
        self.cache_written_tokens += _in_bounds(usage.cache_creation_tokens)


class RequestMetrics:
    """Observer that counts every request while it is `on`; it asks for no bytes.

    `requests` are by endpoint, outcome, upstream and model, `seconds` by endpoint,
    `models` by upstream and model, `errors` by upstream, class and code.
    """

    def __init__(self, hide: Callable[[str], str] = str) -> None:
        """Take what removes secrets from names."""
        self.on = False
        self.price_of: PriceOf = no_price
        self.open = 0
        self.requests = Rows(Count, hide)
        self.seconds = Rows(Histogram, hide)
        self.models = Rows(ModelNumbers, hide)
        self.errors = Rows(Count, hide)

    def request_started(self, record: RequestRecord, /) -> None:
        """Count a request that is open; also while off, or it would end below zero."""
        self.open += 1

    def request_finished(self, record: RequestRecord, /) -> None:
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
        for asked, usage in (record.own_usage or {}).items():
            self.models.find(asked).add_usage(usage)
        cost = cost_of(record, self.price_of)
        if cost is None:
            row.without_cost += 1
        else:
            row.cost += max(0.0, cost)


def _in_bounds(tokens: int) -> int:
    """Return a number of tokens by which a counter never shrinks."""
    return min(max(tokens, 0), _MOST_TOKENS)
