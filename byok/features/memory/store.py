"""The file of remembered turns: written, counted, forgotten.

Each turn has its terms, those of the code index, so that `parse_fare` finds "how is the
fare parsed". A question reads all of them. An index over them would answer sooner, but
what is forgotten must be gone at once: SQLite's full-text index keeps the words of
deleted rows until it happens to merge them, and a table of postings was three times as
large as the turns, and took seconds to forget a month.
"""

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from byok.features.memory.turns import LONGEST_ANSWER, Turn
from byok.search.index.parse.tokens import join_terms
from byok.search.retrieval.query import parse_query
from byok.storage.database import transaction
from byok.storage.kind import DatabaseKind, Policy

DAY = 86_400
_LAST_SECOND = 253_402_300_799  # of the year 9999
_TRUSTED_PAUSE = 7 * DAY
_MOST_TURNS = 10_000
_LONGEST_NAMES = 8000
_STEP = 200

MEMORY = DatabaseKind(
    """CREATE TABLE conversation (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    folders TEXT NOT NULL
);
CREATE TABLE turn (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation INTEGER NOT NULL,
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
    """Write the day of a moment, which a wrong clock may have put anywhere."""
    seconds = min(max(0.0, moment), _LAST_SECOND)
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def keep_turn(db: sqlite3.Connection, turn: Turn) -> bool:
    """Write a turn, or add to the last one of its conversation what has no question.

    An agent's turn has many requests; only the first one has the user's words. Of a
    long answer the end is kept, which says what came out. True as a sign that it was
    done.
    """
    folders = "\n".join(turn.folders)
    with transaction(db):
        db.execute(
            "INSERT INTO conversation (name, folders) VALUES (?, ?) ON CONFLICT (name) "
            "DO UPDATE SET folders = excluded.folders WHERE excluded.folders <> ''",
            (turn.conversation, folders),
        )
        (conversation,) = db.execute(
            "SELECT id FROM conversation WHERE name = ?", (turn.conversation,)
        ).fetchone()
        last = db.execute(
            "SELECT id, began, question, answer, tools, files FROM turn "
            "WHERE conversation = ? ORDER BY id DESC LIMIT 1",
            (conversation,),
        ).fetchone()
        number = began = None
        question, answer = turn.question, turn.answer
        tools, files = "\n".join(turn.tools), "\n".join(turn.files)
        if last is not None and not question:
            number, began, question, before, *names = last
            answer = "\n\n".join(filter(None, (before, answer)))[-LONGEST_ANSWER:]
            tools, files = map(_join_names, names, (tools, files))
        db.execute(
            "INSERT OR REPLACE INTO turn VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(number, conversation, began or turn.began),
                *(question, answer, tools, files),
                _terms_of(question, f"{answer} {tools} {files}"),
            ),
        )
    return True


def _terms_of(question: str, rest: str) -> str:
    """Return the terms of a turn; a word of the question counts twice.

    A question in another script has the English words that code search reads in it too:
    its own pairs of ideographs are hardly ever the same in another question.
    """
    found = join_terms(f"{question} {question} {rest}")
    if question.isascii():
        return found
    return " ".join((found, *parse_query(question).terms))


def _join_names(before: str, more: str) -> str:
    """Join names, each on a line, without repeats."""
    lines = filter(None, (*before.split("\n"), *more.split("\n")))
    return "\n".join(dict.fromkeys(lines))[-_LONGEST_NAMES:]


def measure(db: sqlite3.Connection) -> MemorySize:
    """Count what is kept."""
    turns, since = db.execute("SELECT count(*), min(began) FROM turn").fetchone()
    (conversations,) = db.execute("SELECT count(*) FROM conversation").fetchone()
    return MemorySize(conversations, turns, since or 0.0)


def list_conversations(db: sqlite3.Connection, most: int) -> list[ConversationRow]:
    """Return the conversations that went on last, the newest first."""
    found = db.execute(
        "SELECT c.name, first.began, turns, c.folders, first.question FROM "
        "(SELECT conversation, min(id) AS first, max(id) AS last, count(*) AS turns "
        "FROM turn GROUP BY conversation) AS t JOIN conversation c "
        "ON c.id = t.conversation JOIN turn first ON first.id = t.first "
        "ORDER BY t.last DESC LIMIT ?",
        (most,),
    )
    return [ConversationRow(*row) for row in found]


# What is forgotten: the file holds nothing of it any more, nor does its log.


def forget_conversation(db: sqlite3.Connection, name: str) -> int:
    """Delete a conversation; return how many turns it had."""
    rows = db.execute(
        "SELECT t.id FROM turn t JOIN conversation c ON c.id = t.conversation "
        "WHERE c.name = ?",
        (name,),
    ).fetchall()
    return _delete(db, [number for (number,) in rows])


def forget_before(db: sqlite3.Connection, moment: float) -> int:
    """Delete the turns that began before a moment; return how many."""
    rows = db.execute("SELECT id FROM turn WHERE began < ?", (moment,)).fetchall()
    return _delete(db, [number for (number,) in rows])


def forget_expired(db: sqlite3.Connection, now: float, days: int) -> int:
    """Delete turns that are older than so many days, and the oldest of too many.

    A clock may be wrong, as after an empty battery. So age is counted from now, but at
    most from a week after the newest turn that is at least a day old: only what was
    said while the clock was far behind is lost when it is right again.
    """
    newest = "SELECT max(began) FROM turn WHERE began <= ?"
    (seen,) = db.execute(newest, (now - DAY,)).fetchone()
    trusted = now if seen is None else min(now, float(seen) + _TRUSTED_PAUSE)
    expired = forget_before(db, trusted - days * DAY)
    oldest = "SELECT id FROM turn ORDER BY id DESC LIMIT -1 OFFSET ?"
    surplus = [number for (number,) in db.execute(oldest, (_MOST_TURNS,))]
    return expired + _delete(db, surplus)


def _delete(db: sqlite3.Connection, numbers: Sequence[int]) -> int:
    """Delete turns in small transactions, then whatever of them is left in the file."""
    for start in range(0, len(numbers), _STEP):
        some = [(number,) for number in numbers[start : start + _STEP]]
        with transaction(db):
            db.executemany("DELETE FROM turn WHERE id = ?", some)
    if numbers:
        db.execute(
            "DELETE FROM conversation WHERE id NOT IN (SELECT conversation FROM turn)"
        )
        db.executescript("PRAGMA incremental_vacuum")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return len(numbers)
