"""Conversations in the journal, and the totals of each."""

import sqlite3
from pathlib import Path
from typing import NamedTuple

from byok.journal.file import reading
from byok.journal.totals import whole

# From the index alone, so that the length of the journal hardly matters.
_LATEST = """SELECT conversation, max(started) AS last FROM request
    WHERE conversation <> '' GROUP BY conversation HAVING last < ?
    ORDER BY last DESC LIMIT ?"""
_ASKED = "(purpose <> '' OR model <> '' OR outcome <> 'ok')"  # as in `LogFilter`
_SUMS = f"""SELECT min(started), max(started + seconds), count(*),
    total(outcome = 'failed'), total(input_tokens), total(output_tokens),
    iif(count(cache_read_tokens), total(cache_read_tokens), NULL),
    total(cost), total(cost IS NULL), total(repairs),
    total(dropped_calls), max(client)
    FROM request WHERE conversation <> '' AND conversation = ? AND {_ASKED}"""  # noqa: S608 - our own words
_MODELS = f"""SELECT upstream, model, count(*) FROM request
    WHERE conversation <> '' AND conversation = ? AND model <> '' AND {_ASKED}
    GROUP BY upstream, model ORDER BY 3 DESC, 1, 2 LIMIT 10"""  # noqa: S608 - our own words


class ConversationSums(NamedTuple):
    """A conversation: when it began and ended, and the sums of its requests.

    Times are in seconds since 1970, `cost` is in US dollars; `unpriced` requests, whose
    cost is unknown, have no part in it. `cache_read_tokens` are None where no upstream
    told of a cache. `models` are as `upstream:model`, the one that was asked most
    first, at most ten.
    """

    conversation: str
    first: float
    last: float
    requests: int
    failed: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int | None
    cost: float
    unpriced: int
    repairs: int
    dropped_calls: int
    client: str
    models: tuple[str, ...]


class ConversationPage(NamedTuple):
    """Some conversations, the latest first; the next ones began `before`, if any."""

    conversations: list[ConversationSums]
    before: float | None


def latest_conversations(
    path: Path, count: int, before: float | None = None
) -> ConversationPage:
    """Return at most `count` conversations whose last request started `before`.

    Raises:
        CannotStart: the journal cannot be read.
    """
    bound = float("inf") if before is None else before
    with reading(path) as db:
        if db is None:
            return ConversationPage([], None)
        rows = db.execute(_LATEST, (bound, count + 1)).fetchall()
        found = [_add_up(db, name) for name, _ in rows[:count]]
    last = rows[count - 1][1] if len(rows) > count else None
    return ConversationPage([sums for sums in found if sums], last)


def sum_requests(path: Path, conversation: str) -> ConversationSums | None:
    """Return the sums of a conversation, None if it has no requests.

    Raises:
        CannotStart: the journal cannot be read.
    """
    with reading(path) as db:
        return None if db is None else _add_up(db, conversation)


def _add_up(db: sqlite3.Connection, conversation: str) -> ConversationSums | None:
    first, last, requests, *counts, client = db.execute(
        _SUMS, (conversation,)
    ).fetchone()
    if not requests:
        return None
    failed, tokens_in, tokens_out, cached, cost, unpriced, repairs, drops = counts
    models = db.execute(_MODELS, (conversation,)).fetchall()
    return ConversationSums(
        conversation,
        first,
        last,
        requests,
        whole(failed),
        whole(tokens_in),
        whole(tokens_out),
        None if cached is None else whole(cached),
        cost,
        whole(unpriced),
        whole(repairs),
        whole(drops),
        client,
        tuple(f"{upstream}:{model}" for upstream, model, _ in models),
    )
