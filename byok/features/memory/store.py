"""The file of stored turns: writes, counts and deletes them.

Each turn has its terms, those of the code index, so that `parse_fare` matches "how is
the fare parsed". A search reads all of them. An index would be faster, but deleted
turns must be gone at once: SQLite's full-text index keeps the words of deleted rows
until it happens to merge them, and a table of postings was three times as large as the
turns, and took seconds to delete a month.
"""

import sqlite3
from datetime import datetime
from typing import NamedTuple

from byok.features.memory.turns import LONGEST_ANSWER, KeptTurn
from byok.search.index.parse.tokens import join_terms
from byok.search.retrieval.query import parse_query
from byok.storage.database import expired_before
from byok.storage.kind import DatabaseKind, Policy

DAY = 86_400
_LAST_DAY = 253_402_128_000  # in the year 9999 in every time zone
_MAX_TURNS = 10_000
_MAX_NAMES_CHARS = 8000

MEMORY = DatabaseKind(
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


def day_of(moment: float) -> str:
    """Return the day of a moment in this machine's time zone, in ISO 8601.

    Any moment is accepted, as a clock may have been wrong.
    """
    seconds = min(max(DAY, moment), _LAST_DAY)
    return datetime.fromtimestamp(seconds).date().isoformat()


def store_turn(db: sqlite3.Connection, turn: KeptTurn) -> None:
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
        stored = KeptTurn(*fields)
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


def _terms_of(turn: KeptTurn) -> str:
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
