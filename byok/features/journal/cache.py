"""The savings of upstreams' prompt caches, and the cost of expired ones.

Both are in tokens and in dollars, at today's prices. Functions that read the journal
raise CannotStart if it cannot be read.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from byok.dialects.model_facts import Price
from byok.features.cost import PriceOf
from byok.features.journal.reader import read_journal, select_rows

_MILLION = 1_000_000
_LIFETIME = 300.0  # seconds for which upstreams cache a prompt, at least
_MIN_LOST = 1000  # tokens; upstreams cache no shorter prompts
_USES = """SELECT upstream, model, total(cache_read_tokens), total(cache_written_tokens)
    FROM request WHERE {} AND cache_read_tokens NOT NULL GROUP BY upstream, model"""
# The requests after a pause, with the number of tokens in the cache before it.
_AFTER_PAUSES = f"""SELECT id, conversation, upstream, model, max(0, since - took),
    cached_before, input_tokens, cache_read_tokens, cache_written_tokens FROM (
        SELECT id, started, conversation, upstream, model, input_tokens,
            cache_read_tokens, cache_written_tokens, prompt_change,
            lag(seconds) OVER turns AS took, started - lag(started) OVER turns AS since,
            lag(cache_read_tokens + ifnull(cache_written_tokens, 0)) OVER turns
                AS cached_before
        FROM request WHERE conversation <> '' AND cache_read_tokens NOT NULL
            AND conversation IN (SELECT conversation FROM request
                WHERE conversation <> '' AND {{0}})
        WINDOW turns AS (
            PARTITION BY conversation, upstream, model ORDER BY started, id))
    WHERE since >= {_LIFETIME} AND prompt_change = '' AND {{0}}"""  # noqa: S608 - our own words


class ExpiredCache(NamedTuple):
    """A prompt was no longer cached, `pause` seconds after the turn before.

    `tokens` that had been in the cache were paid in full; `extra_cost` is the
    difference in US dollars, None if a price is unknown.
    """

    pause: float
    tokens: int
    extra_cost: float | None


class CacheUse(NamedTuple):
    """A model's use of its upstream's cache, in tokens.

    `losses` is how often a cache had expired, `lost` the tokens of these caches, and
    `rewritten` those of them that were cached again. The `latest` loss is a request by
    its number, its conversation, and the upstream.
    """

    upstream: str
    model: str
    read: int = 0
    written: int = 0
    lost: int = 0
    rewritten: int = 0
    losses: int = 0
    latest: tuple[int, str, str] = (0, "", "")


class CacheSums(NamedTuple):
    """The sums of cache use: tokens that were `read`, and US dollars `saved`.

    `saved` is negative if writing to caches cost more. In `losses` requests, `lost`
    tokens were no longer cached, which cost `lost_cost` more. `unpriced` of the read
    and `lost_unpriced` of the lost tokens are not in the dollars. The `latest` loss is
    a request by its number, its conversation, and the upstream.
    """

    read: int = 0
    saved: float = 0.0
    unpriced: int = 0
    losses: int = 0
    lost: int = 0
    lost_cost: float = 0.0
    lost_unpriced: int = 0
    latest: tuple[int, str, str] = (0, "", "")


class _AfterPause(NamedTuple):
    number: int
    conversation: str
    upstream: str
    model: str
    pause: float
    cached_before: int
    input_tokens: int | None
    cache_read_tokens: int
    cache_written_tokens: int | None

    @property
    def lost(self) -> int:
        """The tokens that were paid in full, but were cached before."""
        lost = min(self.cached_before, self.input_tokens or 0) - self.cache_read_tokens
        return lost if lost >= max(_MIN_LOST, self.cached_before / 2) else 0

    @property
    def rewritten(self) -> int:
        """The lost tokens that were cached again."""
        return min(self.lost, self.cache_written_tokens or 0)


def find_expired(
    path: Path, conversations: Sequence[str], price_of: PriceOf
) -> dict[str, dict[int, ExpiredCache]]:
    """Return the turns whose prompt was no longer cached, by conversation and number.

    A prompt had expired if much less of it was read from the cache than the turn before
    had written or read, although it begins with the same tokens, after a long pause.
    """
    where = f"conversation IN ({', '.join('?' * len(conversations))})"
    result: dict[str, dict[int, ExpiredCache]] = {}
    read = partial(_losses, where=where, values=conversations)
    for turn in read_journal(path, read, list[_AfterPause]()):
        price = price_of(turn.upstream, turn.model)
        extra = _price_cache(price, turn.lost, -turn.rewritten)
        expired = ExpiredCache(turn.pause, turn.lost, extra)
        result.setdefault(turn.conversation, {})[turn.number] = expired
    return result


def read_uses(
    db: sqlite3.Connection, where: str, values: Sequence[object]
) -> list[CacheUse]:
    """Return the cache use of each model in requests that match `where`."""
    query = _USES.format(where)
    uses = {use[:2]: use for use in select_rows(db, CacheUse, query, values)}
    for turn in _losses(db, where, values):
        use = uses[turn.upstream, turn.model]
        uses[turn.upstream, turn.model] = use._replace(
            lost=use.lost + turn.lost,
            rewritten=use.rewritten + turn.rewritten,
            losses=use.losses + 1,
            latest=max(use.latest, (turn.number, turn.conversation, turn.upstream)),
        )
    return [*uses.values()]


def sum_cache(uses: Iterable[CacheUse], price_of: PriceOf) -> CacheSums:
    """Return the sums of all uses, at today's prices."""
    total = CacheSums()
    for use in uses:
        price = price_of(use.upstream, use.model)
        saved = _price_cache(price, use.read, use.written)
        cost = _price_cache(price, use.lost, -use.rewritten)
        total = CacheSums(
            total.read + use.read,
            total.saved + (saved or 0.0),
            total.unpriced + (use.read if saved is None else 0),
            total.losses + use.losses,
            total.lost + use.lost,
            total.lost_cost + (cost or 0.0),
            total.lost_unpriced + (use.lost if cost is None else 0),
            max(total.latest, use.latest),
        )
    return total


def weigh_cache(path: Path, conversation: str, price_of: PriceOf) -> CacheSums:
    """Return the sums of cache use in a conversation."""
    where = "conversation <> '' AND conversation = ?"
    read = partial(read_uses, where=where, values=(conversation,))
    return sum_cache(read_journal(path, read, list[CacheUse]()), price_of)


def _losses(
    db: sqlite3.Connection, where: str, values: Sequence[object]
) -> list[_AfterPause]:
    query = _AFTER_PAUSES.format(where)
    turns = select_rows(db, _AfterPause, query, (*values, *values))
    return [turn for turn in turns if turn.lost]


def _price_cache(price: Price | None, read: int, written: int) -> float | None:
    """Return how much more tokens would cost if no cache were read or written."""
    price = price or Price()
    total = 0.0
    for tokens, cached in ((read, price.cache_read), (written, price.cache_write)):
        if tokens and price.input:
            if cached is None:
                return None
            total += tokens * (price.input - cached)
        elif tokens and price.input is None:
            return None
    return total / _MILLION
