"""The cost of a request: tokens times known prices, or unknown; never a guess."""

from collections.abc import Callable
from typing import TypeAlias

from byok.dialects.model_facts import Price
from byok.errors import ConnectFailed, ContextLengthExceeded, UpstreamRefused
from byok.events import Usage
from byok.record import RequestOutcome, RequestRecord

PriceOf: TypeAlias = Callable[[str, str], Price | None]  # by upstream and model
_MILLION = 1_000_000
# Failures of an upstream that has made no token.
_FREE = frozenset(
    kind.__name__ for kind in (ConnectFailed, UpstreamRefused, ContextLengthExceeded)
)


def no_price(upstream: str, model: str) -> Price | None:
    """Know no price of any model."""
    del upstream, model
    return None


def cost_of(record: RequestRecord, price_of: PriceOf) -> float | None:
    """Return the US dollars that a request cost; None if any part is not known."""
    if not record.attempts:
        return 0.0
    if not _is_counted(record):
        return None
    spent = [*(record.own_usage or {}).items()]
    if record.usage is not None:
        spent.append(((record.upstream, record.model), record.usage))
    total = 0.0
    for asked, usage in spent:
        dollars = price_tokens(usage, price_of(*asked))
        if dollars is None:
            return None
        total += dollars
    return total


def _is_counted(record: RequestRecord) -> bool:
    """Tell whether every model that was asked reported its tokens."""
    if record.uncounted:
        return False
    if record.usage is not None:
        return True
    if record.first_byte is not None:
        return False  # an answer began, and broke off before its count
    if record.outcome is RequestOutcome.OK:
        return bool(record.own_usage)  # nothing but byok's own questions was asked
    return record.error_class in _FREE


def price_tokens(usage: Usage, price: Price | None) -> float | None:
    """Return what tokens cost at these prices; None if one that counts is unknown.

    If a model's prompts are free, so is its cache.
    """
    price = price or Price()
    read, written = usage.cache_read_tokens, usage.cache_creation_tokens
    fresh = max(0, usage.input_tokens - read - written)
    cached = 0.0 if price.input == 0 else None
    parts = (
        (fresh, price.input),
        (read, cached if price.cache_read is None else price.cache_read),
        (written, cached if price.cache_write is None else price.cache_write),
        (usage.output_tokens, price.output),
    )
    total = 0.0
    for tokens, dollars in parts:
        if tokens and dollars is None:
            return None
        total += tokens * (dollars or 0.0)
    return total / _MILLION
