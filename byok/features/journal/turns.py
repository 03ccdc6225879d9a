"""Why a conversation was dear: its dearest turn, and what the upstream's cache did.

`weigh_cost` raises CannotStart if the journal cannot be read.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from byok.dialects.model_facts import Price
from byok.features.cost import PriceOf
from byok.features.journal.reader import read_journal
from byok.features.journal.rows import select_rows
from byok.features.journal.schema import ASKED

_MILLION = 1_000_000
_LIFETIME = 300.0  # seconds for which upstreams keep a prompt, at least
_LEAST_LOST = 1000  # tokens; upstreams keep no shorter prompts
_DEAREST = f"""SELECT id, cost, (SELECT count(*) FROM request AS other
        WHERE other.conversation = request.conversation AND other.conversation <> ''
        AND {ASKED}
        AND (other.started, other.id) <= (request.started, request.id))
    FROM request WHERE conversation <> '' AND conversation = ? AND cost > 0
    ORDER BY cost DESC, id LIMIT 1"""  # noqa: S608 - our own words
_CACHED = """SELECT upstream, model, total(cost), total(cache_read_tokens),
    total(cache_written_tokens) FROM request
    WHERE conversation <> '' AND conversation = ? AND cost NOT NULL
    GROUP BY upstream, model"""

# What was asked after a pause, with what the cache held before it.
_AFTER_PAUSES = f"""SELECT id, conversation, upstream, model, max(0, since - took),
    kept, input_tokens, cache_read_tokens, cache_written_tokens FROM (
        SELECT id, conversation, upstream, model, input_tokens, cache_read_tokens,
            cache_written_tokens, prompt_change, lag(seconds) OVER turns AS took,
            started - lag(started) OVER turns AS since, lag(cache_read_tokens
                + ifnull(cache_written_tokens, 0)) OVER turns AS kept
        FROM request WHERE conversation <> '' AND cache_read_tokens NOT NULL
            AND conversation IN ({{}})
        WINDOW turns AS (
            PARTITION BY conversation, upstream, model ORDER BY started, id))
    WHERE since >= {_LIFETIME} AND prompt_change = ''"""  # noqa: S608 - our own words


class DearTurn(NamedTuple):
    """The request that cost most, and which turn of its conversation it is, from 1."""

    number: int
    cost: float
    turn: int


class ConversationCost(NamedTuple):
    """The dearest turn, None if all are free or of unknown price.

    `without_cache` is what the turns of known price would have cost in US dollars if no
    upstream had kept their prompts, None if a price is not known.
    """

    dearest: DearTurn | None = None
    without_cache: float | None = None


class ExpiredCache(NamedTuple):
    """The upstream had forgotten the prompt: `pause` seconds after the turn before.

    `extra_cost` is what that cost in US dollars, None if a price is not known.
    """

    pause: float
    extra_cost: float | None


class ExpiredCaches(NamedTuple):
    """How often that was, and what it cost in all, None if a price is not known."""

    times: int = 0
    extra_cost: float | None = 0.0


class _AfterPause(NamedTuple):
    number: int
    conversation: str
    upstream: str
    model: str
    pause: float
    kept: int
    input_tokens: int | None
    cache_read_tokens: int
    cache_written_tokens: int | None


class _CachedSums(NamedTuple):
    upstream: str
    model: str
    cost: float
    read: int
    written: int


def weigh_cost(path: Path, conversation: str, price_of: PriceOf) -> ConversationCost:
    """Return where the cost of a conversation comes from, at the prices of now."""

    def read(db: sqlite3.Connection) -> ConversationCost:
        asked = (conversation,)
        dearest = next(select_rows(db, DearTurn, _DEAREST, asked), None)
        sums = [*select_rows(db, _CachedSums, _CACHED, asked)]
        return ConversationCost(dearest, _cost_uncached(sums, price_of))

    return read_journal(path, read, ConversationCost())


def find_expired(
    path: Path, conversation: str, price_of: PriceOf
) -> dict[int, ExpiredCache]:
    """Return the turns, by number, whose prompt was no longer kept.

    It was not if much less of it came from the cache than the turn before had put or
    found there, which was long ago, while the prompt goes on as it was.
    """
    found = _read_expired(path, [conversation], price_of)
    return {turn.number: expired for turn, expired in found}


def count_expired(
    path: Path, conversations: Sequence[str], price_of: PriceOf
) -> dict[str, ExpiredCaches]:
    """Return the sums of what `find_expired` finds, by conversations that have any."""
    found: dict[str, ExpiredCaches] = {}
    for turn, expired in _read_expired(path, conversations, price_of):
        times, cost = found.get(turn.conversation, ExpiredCaches())
        extra = expired.extra_cost
        total = None if cost is None or extra is None else cost + extra
        found[turn.conversation] = ExpiredCaches(times + 1, total)
    return found


def _read_expired(
    path: Path, conversations: Sequence[str], price_of: PriceOf
) -> list[tuple[_AfterPause, ExpiredCache]]:
    query = _AFTER_PAUSES.format(", ".join("?" * len(conversations)))

    def read(db: sqlite3.Connection) -> list[tuple[_AfterPause, ExpiredCache]]:
        turns = select_rows(db, _AfterPause, query, conversations)
        return [
            (turn, expired)
            for turn in turns
            if (expired := _find_loss(turn, price_of(turn.upstream, turn.model)))
        ]

    return read_journal(path, read, [])


def _find_loss(turn: _AfterPause, price: Price | None) -> ExpiredCache | None:
    lost = min(turn.kept, turn.input_tokens or 0) - turn.cache_read_tokens
    if lost < max(_LEAST_LOST, turn.kept / 2):
        return None
    written = min(lost, turn.cache_written_tokens or 0)
    return ExpiredCache(turn.pause, _price_cache(price, lost, -written))


def _cost_uncached(sums: Iterable[_CachedSums], price_of: PriceOf) -> float | None:
    total = 0.0
    for one in sums:
        saved = _price_cache(price_of(one.upstream, one.model), one.read, one.written)
        if saved is None:
            return None
        total += one.cost + saved
    return total


def _price_cache(price: Price | None, read: int, written: int) -> float | None:
    """Return what tokens would cost more if they were not read from a cache.

    Nor would those be `written` to it.
    """
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
