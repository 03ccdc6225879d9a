"""Conversations in the journal, and the totals of each."""

import sqlite3
from pathlib import Path
from typing import NamedTuple

from byok.journal.entry import Moment
from byok.journal.reader import read_journal
from byok.journal.rows import select_rows

# From the index alone, so that the length of the journal hardly matters.
_LATEST = """SELECT conversation, max(started) AS last FROM request
    WHERE conversation <> '' GROUP BY conversation HAVING last < ?
    ORDER BY last DESC LIMIT ?"""
_ASKED = "(purpose <> '' OR model <> '' OR outcome <> 'ok')"  # as in `LogFilter`
_SUMS = f"""SELECT conversation, min(started), max(started + seconds), count(*),
    total(outcome = 'failed'), total(input_tokens), total(output_tokens),
    iif(count(cache_read_tokens), total(cache_read_tokens), NULL),
    total(cost), total(cost IS NULL), total(repairs),
    total(dropped_calls), max(client)
    FROM request WHERE conversation <> '' AND conversation = ? AND {_ASKED}
    GROUP BY conversation"""  # noqa: S608 - our own words
_MODELS = f"""SELECT upstream || ':' || model, count(*) FROM request
    WHERE conversation <> '' AND conversation = ? AND model <> '' AND {_ASKED}
    GROUP BY upstream, model ORDER BY 2 DESC, upstream, model LIMIT 10"""  # noqa: S608 - our own words


class ConversationSums(NamedTuple):
    """A conversation: when it began and ended, and the sums of its requests.

    Times are in seconds since 1970, `cost` is in US dollars; `unpriced` requests, whose
    cost is unknown, have no part in it. `cache_read_tokens` are None where no upstream
    told of a cache. `models` are as `upstream:model`, the one that was asked most
    first, at most ten.
    """

    conversation: str
    first: Moment
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
    models: tuple[str, ...] = ()


class _Latest(NamedTuple):
    conversation: str
    last: Moment


class _Model(NamedTuple):
    model: str
    requests: int


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

    def read(db: sqlite3.Connection) -> ConversationPage:
        rows = [*select_rows(db, _Latest, _LATEST, (bound, count + 1))]
        sums = [_add_up(db, row.conversation) for row in rows[:count]]
        last = rows[count - 1].last if len(rows) > count else None
        return ConversationPage([one for one in sums if one], last)

    return read_journal(path, read, ConversationPage([], None))


def sum_requests(path: Path, conversation: str) -> ConversationSums | None:
    """Return the sums of a conversation, None if it has no requests.

    Raises:
        CannotStart: the journal cannot be read.
    """
    return read_journal(path, lambda db: _add_up(db, conversation), None)


def _add_up(db: sqlite3.Connection, conversation: str) -> ConversationSums | None:
    asked = (conversation,)
    for sums in select_rows(db, ConversationSums, _SUMS, asked):
        models = tuple(row.model for row in select_rows(db, _Model, _MODELS, asked))
        return sums._replace(models=models)
    return None
