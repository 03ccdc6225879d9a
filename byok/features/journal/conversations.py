"""Conversations in the journal: the totals of each, filtered, sorted and in pages.

All functions raise CannotStart if the journal cannot be read.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from msgspec import Struct

from byok.core.bounded import BoundedMap
from byok.features.journal.entry import Moment
from byok.features.journal.reader import (
    make_row,
    read_journal,
    read_number,
    select_rows,
)
from byok.features.journal.requests import highest_number
from byok.features.journal.schema import ASKED, FAMILY, MODEL_NAME
from byok.storage.database import identity_of

# All SQL here is byok's own text; values are bound.
# Read from the index alone, so that the length of the journal hardly matters.
_LATEST = """SELECT conversation, max(started) AS last FROM request
    WHERE conversation <> '' GROUP BY conversation ORDER BY last DESC LIMIT ?"""
_TOTALS = """min(started), max(started + seconds), count(*), total(seconds),
    total(outcome = 'failed'), total(input_tokens), total(output_tokens),
    iif(count(cache_read_tokens), total(cache_read_tokens), NULL),
    total(iif(cache_read_tokens IS NULL, 0, input_tokens)),
    total(cost), total(cost IS NULL AND model <> ''), total(repairs),
    total(dropped_calls), max(client), max(folder)"""
_SUMS = f"""SELECT conversation, {_TOTALS}
    FROM request WHERE conversation <> '' AND conversation = ? AND {ASKED}
    GROUP BY conversation"""  # noqa: S608 - our own words
_MODELS = f"""SELECT {MODEL_NAME}, sum(outcome <> 'failed') FROM request
    WHERE conversation <> '' AND conversation = ? AND model <> '' AND {ASKED}
    GROUP BY upstream, model ORDER BY 2 DESC, upstream, model LIMIT 10"""  # noqa: S608 - our own words
_DEAREST = f"""SELECT id, cost, (SELECT count(*) FROM request AS other
        WHERE other.conversation = request.conversation AND other.conversation <> ''
        AND {ASKED}
        AND (other.started, other.id) <= (request.started, request.id))
    FROM request WHERE conversation <> '' AND conversation = ? AND cost > 0
    ORDER BY cost DESC, id LIMIT 1"""  # noqa: S608 - our own words
# What users may sort by; conversations without a folder come last.
SORTS = {
    "last": ["last {}"],
    "start": ["first {}"],
    "cost": ["cost {}"],
    "turns": ["requests {}"],
    "tokens": ["input_tokens + output_tokens {}"],
    "errors": ["failed {}"],
    "folder": ["folder = ''", "folded(folder) {}"],
}
_MAX_CACHED_COUNTS = 50  # of different filters
_SLICE = 50_000  # requests that are added at once
_MANY = 2 * _SLICE  # new requests, for which a page should not wait


class ConversationSums(NamedTuple):
    """A conversation: when it began and ended, and the sums of its requests.

    Times are in seconds since 1970; `seconds` is the sum of the durations, also of
    requests that ran at the same time. `cost` is in US dollars, without `unpriced`
    requests to models of unknown price. `cache_read_tokens` are None if no upstream
    reported a cache; `cache_input_tokens` is the input of those that did. `models` are
    at most ten full names, the one that answered most first. `folder` is the name of
    the folder in which the client worked, "" if that is unknown.
    """

    conversation: str
    first: Moment
    last: float
    requests: int
    seconds: float
    failed: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int | None
    cache_input_tokens: int
    cost: float
    unpriced: int
    repairs: int
    dropped_calls: int
    client: str
    folder: str
    models: tuple[str, ...] = ()


class DearTurn(NamedTuple):
    """The most expensive request, and its turn in the conversation, from 1."""

    number: int
    cost: float
    turn: int


class _Latest(NamedTuple):
    conversation: str
    last: Moment


class _Model(NamedTuple):
    model: str
    answers: int


def latest_conversations(path: Path, count: int) -> list[ConversationSums]:
    """Return at most `count` conversations, the latest first."""

    def read(db: sqlite3.Connection) -> list[ConversationSums]:
        rows = [*select_rows(db, _Latest, _LATEST, (count,))]
        all_sums = [_add_up(db, row.conversation) for row in rows]
        return [sums for sums in all_sums if sums]

    return read_journal(path, read, [])


def sum_requests(path: Path, conversation: str) -> ConversationSums | None:
    """Return the sums of a conversation, None if it has no requests."""
    return read_journal(path, lambda db: _add_up(db, conversation), None)


def find_dearest(path: Path, conversation: str) -> DearTurn | None:
    """Return the most expensive turn, None if all are free or of unknown price."""

    def read(db: sqlite3.Connection) -> DearTurn | None:
        return next(select_rows(db, DearTurn, _DEAREST, (conversation,)), None)

    return read_journal(path, read, None)


def _add_up(db: sqlite3.Connection, conversation: str) -> ConversationSums | None:
    values = (conversation,)
    for sums in select_rows(db, ConversationSums, _SUMS, values):
        models = tuple(row.model for row in select_rows(db, _Model, _MODELS, values))
        return sums._replace(models=models)
    return None


# ---- All conversations, in a table of their totals


_CLIENTS = f"""SELECT {FAMILY}, count(*) FROM talk WHERE client <> ''
    GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 50"""  # noqa: S608 - our own words
_NEWER = "SELECT count(*) FROM request WHERE id > ?"
_STATE = "SELECT count(*), coalesce(min(id), 0), coalesce(max(id), 0) FROM request"
_NEW = f"""SELECT conversation, {_TOTALS}, iif(model = '', '', {MODEL_NAME})
    FROM request NOT INDEXED WHERE id > ? AND id <= ? AND conversation <> ''
    AND {ASKED} GROUP BY conversation, upstream, model"""  # noqa: S608 - our own words
_NAMES = [name for name in ConversationSums._fields if name != "models"]
_COLUMNS = ", ".join(_NAMES)
_TABLES = f"""CREATE TABLE talk ({_COLUMNS}, PRIMARY KEY (conversation)) WITHOUT ROWID;
CREATE TABLE talk_model (conversation, model, answers,
    PRIMARY KEY (conversation, model)) WITHOUT ROWID"""
_SUMMED = (
    *("requests", "seconds", "failed", "input_tokens", "output_tokens"),
    *("cache_input_tokens", "cost", "unpriced", "repairs", "dropped_calls"),
)
_CHANGES = ", ".join(
    (
        *(f"{name} = {name} + excluded.{name}" for name in _SUMMED),
        "first = min(first, excluded.first)",
        "last = max(last, excluded.last)",
        "cache_read_tokens = iif(excluded.cache_read_tokens IS NULL, cache_read_tokens,"
        " ifnull(cache_read_tokens, 0) + excluded.cache_read_tokens)",
        "client = iif(excluded.client = '', client, excluded.client)",
        "folder = iif(excluded.folder = '', folder, excluded.folder)",
    )
)
_ADD = f"""INSERT INTO talk ({_COLUMNS}) VALUES ({", ".join("?" * len(_NAMES))})
    ON CONFLICT DO UPDATE SET {_CHANGES}"""  # noqa: S608 - our own words
_ADD_MODEL = """INSERT INTO talk_model VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET answers = answers + excluded.answers"""
_MODELS_OF = """SELECT model FROM talk_model WHERE conversation = ?
    ORDER BY answers DESC, model LIMIT 10"""
_MATCH_SUMS = """count(*), total(requests), total(failed), total(input_tokens),
    total(output_tokens), total(cost), total(unpriced)"""
_HAS_WORDS = """(instr(folded(folder || ' ' || client || ' ' || conversation), ?)
    OR EXISTS (SELECT 1 FROM talk_model AS its
        WHERE its.conversation = talk.conversation AND instr(folded(model), ?)))"""


class ConversationQuery(Struct, frozen=True):
    """A filter and an order of conversations.

    `words` are searched for in the folder, the client, the id and the models, in any
    case of letters; `client` is a family such as `vscode`.
    """

    sort: str = "last"
    descending: bool = True
    words: str = ""
    client: str = ""
    least_cost: float = 0.0
    failed: bool = False

    @property
    def conditions(self) -> tuple[str, list[object]]:
        """An SQL condition, and the values of its parameters."""
        conditions, values = ["1"], list[object]()
        if self.words:
            conditions.append(_HAS_WORDS)
            values += [self.words.casefold()] * 2
        if self.client:
            conditions.append(f"{FAMILY} = ?")
            values.append(self.client)
        if self.least_cost:
            conditions.append("cost >= ?")
            values.append(self.least_cost)
        if self.failed:
            conditions.append("failed > 0")
        return " AND ".join(conditions), values


class FoundSums(NamedTuple):
    """The number of conversations that match, and the sums of their requests."""

    conversations: int = 0
    requests: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0


class ClientCount(NamedTuple):
    """A family of clients, and how many conversations it had."""

    client: str
    conversations: int


class ConversationPage(NamedTuple):
    """Some of the conversations that match, and in `found` the sums of all of them.

    `known` is the number of all conversations; both are None until they are counted.
    """

    conversations: Sequence[ConversationSums] = ()
    found: FoundSums | None = None
    known: int | None = None
    clients: Sequence[ClientCount] = ()


class _State(NamedTuple):
    requests: int = 0
    first: int = 0
    last: int = 0


class ConversationReader:
    """Reads the conversations of one journal; its methods are thread-safe.

    Rows of a journal never change, so the totals are cached in a database in memory,
    and only new requests are added. If some were deleted, the totals are computed
    again. A page should not wait for so `many` new requests.
    """

    def __init__(self, path: Path, many: int = _MANY) -> None:
        self._path = path
        self._many = many
        self._file: tuple[int, int] | None = None
        self._state = _State()  # of the journal, when it was last read
        self._counts = BoundedMap[tuple[object, ...], ConversationPage](
            _MAX_CACHED_COUNTS
        )
        self._counted_state = self._state
        self._lock = Lock()
        self._db = self._start_over()

    def read(
        self, query: ConversationQuery, offset: int, count: int
    ) -> ConversationPage:
        """Return at most `count` conversations from `offset` on."""
        with self._lock:
            if not read_journal(self._path, self._update, False):
                self._db = self._start_over()
            return self._select(query, offset, count)

    def is_behind(self) -> bool:
        """Tell whether many requests are new to this reader."""
        return highest_number(self._path) - self._state.last > self._many

    def _start_over(self) -> sqlite3.Connection:
        self._state = _State()
        self._counts.clear()
        db = sqlite3.connect(":memory:", check_same_thread=False)
        db.create_function("folded", 1, str.casefold, deterministic=True)
        db.executescript(_TABLES)
        return db

    def _update(self, journal: sqlite3.Connection) -> bool:
        """Add new requests; start over if some are gone, or in another file."""
        journal.execute("BEGIN")  # for one snapshot of the file
        state = make_row(_State, journal.execute(_STATE).fetchone())
        newer = read_number(journal, _NEWER, (self._state.last,))
        file = identity_of(self._path)
        if file != self._file or state.requests - newer != self._state.requests:
            self._db, self._file = self._start_over(), file
        first = max(self._state.last, state.first - 1)
        for begin in range(first, state.last, _SLICE):
            self._state = _State(-1)  # until all are added; damage may prevent that
            span = begin, min(begin + _SLICE, state.last)
            self._add_new(journal, span)
        self._state = state
        return True

    def _add_new(self, journal: sqlite3.Connection, span: tuple[int, int]) -> None:
        with self._db:
            for *values, model in journal.execute(_NEW, span):
                *columns, _ = sums = make_row(ConversationSums, values)
                self._db.execute(_ADD, columns)
                if model:
                    row = make_row(_Model, (model, sums.requests - sums.failed))
                    self._db.execute(_ADD_MODEL, (sums.conversation, *row))

    def _select(
        self, query: ConversationQuery, offset: int, count: int
    ) -> ConversationPage:
        where, values = query.conditions
        if self._counted_state != self._state:
            self._counts.clear()
            self._counted_state = self._state
        counted = self._counts.get((where, *values)) or self._count(where, values)
        self._counts[where, *values] = counted
        direction = "DESC" if query.descending else "ASC"
        order = ", ".join(part.format(direction) for part in SORTS[query.sort])
        page = f"""SELECT {_COLUMNS} FROM talk WHERE {where}
            ORDER BY {order}, last DESC, conversation LIMIT ? OFFSET ?"""  # noqa: S608 - our own words
        conversations = list[ConversationSums]()
        for row in self._db.execute(page, (*values, count, offset)):
            sums = ConversationSums(*row)
            models = self._db.execute(_MODELS_OF, (sums.conversation,))
            names = tuple(name for (name,) in models)
            conversations.append(sums._replace(models=names))
        return counted._replace(conversations=conversations)

    def _count(self, where: str, values: Sequence[object]) -> ConversationPage:
        """Return a page with sums only, which are valid until the next request."""
        query = f"SELECT {_MATCH_SUMS} FROM talk WHERE {where}"  # noqa: S608
        return ConversationPage(
            found=make_row(FoundSums, self._db.execute(query, values).fetchone()),
            known=read_number(self._db, "SELECT count(*) FROM talk", ()),
            clients=[ClientCount(*row) for row in self._db.execute(_CLIENTS)],
        )
