"""The file of remembered turns: written, counted, forgotten.

Each turn has its terms, those of the code index, so that `parse_fare` finds "how is the
fare parsed". A question reads all of them. An index over them would answer sooner, but
what is forgotten must be gone at once: SQLite's full-text index keeps the words of
deleted rows until it happens to merge them, and a table of postings was three times as
large as the turns, and took seconds to forget a month.
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
_LAST_DAY = 253_402_128_000  # of the year 9999, whatever the time zone
_MOST_TURNS = 10_000
_LONGEST_NAMES = 8000

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
    """How many conversations and turns are kept, and since when; 0 for none."""

    conversations: int
    turns: int
    since: float


class ConversationRow(NamedTuple):
    """A conversation, as a list shows it; `question` is its first."""

    name: str
    began: float
    turns: int
    folders: str
    question: str


def day_of(moment: float) -> str:
    """Write the day of a moment, which a wrong clock may have put anywhere.

    As everywhere that a user sees days, it is this machine's.
    """
    seconds = min(max(DAY, moment), _LAST_DAY)
    return datetime.fromtimestamp(seconds).date().isoformat()


def keep_turn(db: sqlite3.Connection, turn: KeptTurn) -> None:
    """Write a turn, or add to the last one of its conversation what has no question.

    An agent's turn has many requests; only the first one has the user's words. Of a
    long answer the end is kept, which says what came out.
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
        before = KeptTurn(*fields)
        answers = filter(None, (before.answer, turn.answer))
        turn = before._replace(
            answer="\n\n".join(answers)[-LONGEST_ANSWER:],
            tools=_join_names(before.tools, turn.tools),
            files=_join_names(before.files, turn.files),
        )
    db.execute(
        "INSERT OR REPLACE INTO turn VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (number, *turn, _terms_of(turn)),
    )


def _terms_of(turn: KeptTurn) -> str:
    """Return the terms of a turn; a word of the question counts twice.

    A question in another script has the English words that code search reads in it too:
    its own pairs of ideographs are hardly ever the same in another question.
    """
    asked = turn.question
    found = join_terms(" ".join((asked, asked, turn.answer, turn.tools, turn.files)))
    if asked.isascii():
        return found
    return " ".join((found, *parse_query(asked).terms))


def _join_names(before: str, more: str) -> str:
    """Join names, each on a line, without repeats."""
    lines = filter(None, (*before.split("\n"), *more.split("\n")))
    return "\n".join(dict.fromkeys(lines))[-_LONGEST_NAMES:]


def measure(db: sqlite3.Connection) -> MemorySize:
    """Count what is kept."""
    counts = "SELECT count(DISTINCT conversation), count(*), min(began) FROM turn"
    conversations, turns, since = db.execute(counts).fetchone()
    return MemorySize(conversations, turns, since or 0.0)


def list_conversations(db: sqlite3.Connection, most: int) -> list[ConversationRow]:
    """Return the conversations that went on last, the newest first."""
    found = db.execute(
        "SELECT conversation, began, turns, folders, question FROM "
        "(SELECT min(id) AS first, max(id) AS last, count(*) AS turns "
        "FROM turn GROUP BY conversation) JOIN turn ON id = first "
        "ORDER BY last DESC LIMIT ?",
        (most,),
    )
    return [ConversationRow(*row) for row in found]


# What is forgotten: the file holds nothing of it any more, nor does its log.


def forget_conversation(db: sqlite3.Connection, name: str) -> int:
    """Delete a conversation; return how many turns it had."""
    return _delete(db, "conversation = ?", name)


def forget_before(db: sqlite3.Connection, moment: float) -> int:
    """Delete the turns that began before a moment; return how many."""
    return _delete(db, "began < ?", moment)


def forget_expired(db: sqlite3.Connection, now: float, days: int) -> int:
    """Delete turns that are older than so many days, and the oldest of too many."""
    expired = forget_before(db, expired_before(db, "turn", "began", now, days))
    oldest = "id IN (SELECT id FROM turn ORDER BY id DESC LIMIT -1 OFFSET ?)"
    return expired + _delete(db, oldest, _MOST_TURNS)


def _delete(db: sqlite3.Connection, condition: str, value: object) -> int:
    """Delete turns, then whatever of them is left in the file; return how many."""
    gone = db.execute(f"DELETE FROM turn WHERE {condition}", (value,)).rowcount  # noqa: S608 - our own words
    if gone:
        db.executescript("PRAGMA incremental_vacuum")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return gone
