"""The file of stored turns, and the thread that reads and writes it.

Turns that cannot be written are lost; the log says so once. The first write creates the
file; reading does not.

Each turn has its terms, those of the code index, so that `parse_fare` matches "how is
the fare parsed". A search reads all of them. An index would be faster, but deleted
turns must be gone at once: SQLite's full-text index keeps the words of deleted rows
until it happens to merge them, and a table of postings was three times as large as the
turns, and took seconds to delete a month.
"""

import logging
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from byok.core.bounded import SaidOnce
from byok.core.chat import Json
from byok.core.code_query import RetrievalRequest
from byok.core.errors import BadRequest, NotReady
from byok.features.memory.recall import recall
from byok.features.memory.turns import (
    DAY,
    LONGEST_ANSWER,
    StoredTurn,
    TurnReader,
    clean_name,
)
from byok.search.index.parse.tokens import join_terms
from byok.search.retrieval.query import parse_query
from byok.storage.damage import DATABASE_ENDINGS, remove_set_aside
from byok.storage.database import HelpDatabase, expired_before
from byok.storage.kind import DatabaseKind, Policy
from byok.storage.worker import Worker

_log = logging.getLogger(__name__)
_TIDY_SECONDS = 3600.0
_DEFAULT_LISTED, _MAX_LISTED = 20, 1000
_MAX_DAYS = 100_000
_MAX_TURNS = 10_000
_MAX_NAMES_CHARS = 8000

_MEMORY = DatabaseKind(
    """CREATE TABLE turn (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation TEXT NOT NULL,
    folders TEXT NOT NULL,
    began REAL NOT NULL,
    question TEXT NOT NULL,
    answer TEXT NOT NULL,
    tools TEXT NOT NULL,
    files TEXT NOT NULL,
    terms TEXT NOT NULL
);
CREATE INDEX turn_conversation ON turn (conversation);
CREATE INDEX turn_began ON turn (began)""",
    version=1,
    policy=Policy.HELP,
    pragmas=(
        "busy_timeout = 2000",
        "synchronous = NORMAL",
        "secure_delete = ON",
        "cache_size = -500",
        "journal_size_limit = 4194304",
    ),
    application=0x62796F6B,
    shrinks=True,
)
T = TypeVar("T")


class MemorySize(NamedTuple):
    """The numbers of conversations and turns, and the time of the first, 0 for none."""

    conversations: int
    turns: int
    since: float


class ConversationRow(NamedTuple):
    """A conversation in a list, with its first question."""

    name: str
    began: float
    turns: int
    folders: str
    question: str


class MemoryKeeper:
    """Stores, searches and deletes turns."""

    def __init__(
        self, path: Path, redactor: Callable[[str], str], clock: Callable[[], float]
    ) -> None:
        self._path = path
        self._redactor = redactor
        self._clock = clock
        self._file = HelpDatabase(path, _MEMORY, "conversations are not remembered")
        self._worker = Worker("memory")
        self._days = 0  # for which turns are stored; 0: none expires
        self._tidy_at = 0.0
        self._warned = SaidOnce(1)

    def begin(self, days: int) -> None:
        """Store turns for so many days from now on."""
        self._days, self._tidy_at = days, 0.0
        self.run(self.measure)

    def pause(self) -> None:
        """Close the file until it is needed again; nothing expires meanwhile."""
        self._days = 0
        self.run(self._file.close)

    def store(self, reader: TurnReader) -> None:
        """Write the turn that was read; returns at once."""
        is_accepted = self._worker.offer(partial(self._store, reader))
        if not is_accepted and self._warned.is_new("lost"):
            _log.warning("answers ended faster than they could be remembered")

    def run(self, work: Callable[[], T]) -> "Future[T]":
        """Run a function in the thread, after all earlier ones."""
        return self._worker.run(work)

    def close(self) -> None:
        """Write pending turns, and close the file. Blocks, but not for long."""
        self._worker.close(self._file.close)

    # ---- In the thread

    def recall(self, request: RetrievalRequest) -> str:
        """Return passages of other conversations about a question, "" for none."""
        name = clean_name(request.conversation, self._redactor)
        request = replace(request, conversation=name)
        search = partial(recall, request=request, now=self._clock())
        return self._redactor(self._read(search) or "")

    def measure(self) -> MemorySize:
        """Count the stored turns."""
        return self._read(measure) or MemorySize(0, 0, 0.0)

    def answer(self, body: Json) -> dict[str, Any]:
        """Answer a command: delete what `forget` names, and list the rest.

        Raises:
            BadRequest: 422, the body cannot be used.
        """
        match body.get("forget"):
            case None:
                forgotten = 0
            case "all":
                forgotten = self._forget_all()
            case {"conversation": str(name)}:
                stored_name = clean_name(name, self._redactor)
                forgotten = self._forget(partial(forget_conversation, name=stored_name))
            case {"days": int(days)} if days in range(_MAX_DAYS) and days is not True:
                moment = self._clock() - days * DAY
                forgotten = self._forget(partial(forget_before, moment=moment))
            case _:
                raise BadRequest("Forget all, a conversation or old days.", status=422)
        count = body.get("list", _DEFAULT_LISTED)
        if type(count) is not int:
            raise BadRequest("The length of the list must be a number.", status=422)
        latest = partial(list_conversations, count=min(max(0, count), _MAX_LISTED))
        size = self.measure()
        return {
            **size._asdict(),
            "bytes": sum(_size(file) for file in self._files),
            "forgotten": forgotten,
            "latest": [row._asdict() for row in self._read(latest) or ()],
        }

    @property
    def _files(self) -> list[Path]:
        return [self._path.with_name(self._path.name + e) for e in DATABASE_ENDINGS]

    def _store(self, reader: TurnReader) -> None:
        if (turn := reader.finish()) is not None:
            self._file.use(partial(store_turn, turn=turn.clean(self._redactor)))
            self._tidy()

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Use the file without expired turns; None if there is no file."""
        if not self._path.exists():
            return None
        self._tidy()
        return self._file.use(work)

    def _tidy(self) -> None:
        now = time.monotonic()
        if self._days and now >= self._tidy_at:
            self._tidy_at = now + _TIDY_SECONDS
            delete = partial(forget_expired, now=self._clock(), days=self._days)
            if deleted := self._file.use(delete):
                _log.info("%d turns of conversations have expired", deleted)

    def _forget(self, work: Callable[[sqlite3.Connection], int]) -> int:
        """Delete turns; return their number.

        Raises:
            NotReady: the file cannot be changed.
        """
        deleted = self._read(work)
        if deleted is None and self._path.exists():
            raise NotReady(
                f"{self._path} cannot be changed; the log says why.",
                hint="byok memory forget --all deletes the file.",
            )
        return deleted or 0

    def _forget_all(self) -> int:
        """Delete the file, and damaged ones that were set aside."""
        turns = self.measure().turns
        self._file.close()
        for file in self._files:
            file.unlink(missing_ok=True)
        remove_set_aside(self._path)
        return turns


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0


# ---- The table


def store_turn(db: sqlite3.Connection, turn: StoredTurn) -> None:
    """Write a turn; one without a question is added to the last of its conversation.

    An agent's turn has many requests, and only the first has the user's message. Of a
    long answer the end is stored, which has the outcome.
    """
    last = None
    if not turn.question:
        last = db.execute(
            "SELECT * FROM turn WHERE conversation = ? ORDER BY id DESC LIMIT 1",
            (turn.conversation,),
        ).fetchone()
    number = None
    if last is not None:
        number, *fields, _ = last
        stored = StoredTurn(*fields)
        answers = filter(None, (stored.answer, turn.answer))
        turn = stored._replace(
            answer="\n\n".join(answers)[-LONGEST_ANSWER:],
            tools=_join_names(stored.tools, turn.tools),
            files=_join_names(stored.files, turn.files),
        )
    db.execute(
        "INSERT OR REPLACE INTO turn VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (number, *turn, _terms_of(turn)),
    )


def _terms_of(turn: StoredTurn) -> str:
    """Return the terms of a turn; a word of the question counts twice.

    A question in another script also gets the English words that code search derives
    from it: its own pairs of ideographs hardly ever occur in another question.
    """
    question = turn.question
    texts = (question, question, turn.answer, turn.tools, turn.files)
    text_terms = join_terms(" ".join(texts))
    if question.isascii():
        return text_terms
    return " ".join((text_terms, *parse_query(question).terms))


def _join_names(names: str, more: str) -> str:
    """Join names, each on a line, without repeats."""
    lines = filter(None, (*names.split("\n"), *more.split("\n")))
    return "\n".join(dict.fromkeys(lines))[-_MAX_NAMES_CHARS:]


def measure(db: sqlite3.Connection) -> MemorySize:
    """Count the stored conversations and turns."""
    counts = "SELECT count(DISTINCT conversation), count(*), min(began) FROM turn"
    conversations, turns, since = db.execute(counts).fetchone()
    return MemorySize(conversations, turns, since or 0.0)


def list_conversations(db: sqlite3.Connection, count: int) -> list[ConversationRow]:
    """Return the conversations with the latest turns, the newest first."""
    rows = db.execute(
        "SELECT conversation, began, turns, folders, question FROM "
        "(SELECT min(id) AS first, max(id) AS last, count(*) AS turns "
        "FROM turn GROUP BY conversation) JOIN turn ON id = first "
        "ORDER BY last DESC LIMIT ?",
        (count,),
    )
    return [ConversationRow(*row) for row in rows]


def forget_conversation(db: sqlite3.Connection, name: str) -> int:
    """Delete a conversation; return the number of its turns."""
    return _delete(db, "conversation = ?", name)


def forget_before(db: sqlite3.Connection, moment: float) -> int:
    """Delete the turns that began before a moment; return their number."""
    return _delete(db, "began < ?", moment)


def forget_expired(db: sqlite3.Connection, now: float, days: int) -> int:
    """Delete turns that are older than so many days, and the oldest of too many."""
    expired = forget_before(db, expired_before(db, "turn", "began", now, days))
    oldest = "id IN (SELECT id FROM turn ORDER BY id DESC LIMIT -1 OFFSET ?)"
    return expired + _delete(db, oldest, _MAX_TURNS)


def _delete(db: sqlite3.Connection, condition: str, value: object) -> int:
    """Delete turns, also from free pages and the write-ahead log; return the number."""
    count = db.execute(f"DELETE FROM turn WHERE {condition}", (value,)).rowcount  # noqa: S608 - our own words
    if count:
        db.executescript("PRAGMA incremental_vacuum")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return count
