"""The cost of a request: tokens times known prices, or unknown; never a guess."""

from collections.abc import Callable
from typing import TypeAlias

from byok.core.errors import ConnectFailed, ContextLengthExceeded, UpstreamRefused
from byok.core.events import Usage
from byok.core.record import RequestOutcome, RequestRecord
from byok.dialects.model_facts import Price

PriceOf: TypeAlias = Callable[[str, str], Price | None]  # by upstream and model
_MILLION = 1_000_000
# Failures after which an upstream has generated no token.
FREE_FAILURES = frozenset(
    kind.__name__ for kind in (ConnectFailed, UpstreamRefused, ContextLengthExceeded)
)


def no_price(upstream: str, model: str) -> Price | None:
    """Return None: no price is known."""
    return None


def cost_of(record: RequestRecord, price_of: PriceOf) -> float | None:
    """Return the cost of a request in US dollars; None if any part is unknown."""
    if not record.attempts:
        return 0.0
    answering = record.upstream, record.model
    usages = [*(record.own_usage or {}).items()]
    if record.usage is not None:
        usages.append((answering, record.usage))
    if not _is_counted(record):
        models = {answering, *record.uncounted, *dict(usages)}
        prices = [price_of(*model) for model in models]
        return 0.0 if all(price and price.is_free for price in prices) else None
    if not usages and price_of(*answering) is None:
        return None  # failures are usually free, but this model may be an exception
    total = 0.0
    for model, usage in usages:
        dollars = price_tokens(usage, price_of(*model))
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
        return False  # an answer began, and broke off before its token count
    if record.outcome is RequestOutcome.OK:
        return bool(record.own_usage)  # byok asked only its own questions
    return record.error_class in FREE_FAILURES


def write_dollars(dollars: float) -> str:
    """Write US dollars; small amounts with more digits."""
    if not dollars:
        return "$0"
    return f"${dollars:.4f}" if dollars < 1 else f"${dollars:,.2f}"


def write_cost(dollars: float, unpriced: int) -> str:
    """Write a sum of costs, which does not include the `unpriced` requests."""
    if not unpriced:
        return write_dollars(dollars)
    unknown = f"{unpriced:,} request{'s' * (unpriced != 1)} of unknown price"
    return f"{write_dollars(dollars)} + {unknown}" if dollars else unknown


def price_tokens(usage: Usage, price: Price | None) -> float | None:
    """Return the cost of tokens at these prices; None if a needed one is unknown.

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
