"""Totals of the journal for caps: what a day or a conversation has spent so far."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from byok.journal.reader import read_journal
from byok.journal.rows import make_row

_SUMS = """SELECT total(model <> '' AND attempts > 0),
    total(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)),
    total(cost), total(cost IS NULL AND model <> '') FROM request WHERE """
_ALL = 2**63 - 1


class JournalSums(NamedTuple):
    """The sums of requests to models; `unpriced` have no part in `dollars`."""

    requests: int = 0
    tokens: int = 0
    dollars: float = 0.0
    unpriced: int = 0


def sum_period(
    path: Path, begin: float, end: float, last: int | None = None
) -> JournalSums:
    """Add up what started from `begin` to before `end`, in seconds since 1970.

    `last` is the highest number of an entry that counts, None for any.

    Raises:
        CannotStart: the journal cannot be read.
        OSError: nor can its folder.
    """
    return _add_up(path, "started >= ? AND started < ? AND id <= ?", [begin, end], last)


def sum_conversation(
    path: Path, conversation: str, last: int | None = None
) -> JournalSums:
    """Add up a conversation, as far back as the journal goes.

    Raises:
        CannotStart: the journal cannot be read.
        OSError: nor can its folder.
    """
    named = conversation.encode("utf-8", "replace").decode()
    where = "conversation <> '' AND conversation = ? AND id <= ?"
    return _add_up(path, where, [named], last)


def _add_up(
    path: Path, where: str, values: Sequence[object], last: int | None
) -> JournalSums:
    bound = (*values, _ALL if last is None else last)

    def read(db: sqlite3.Connection) -> JournalSums:
        return make_row(JournalSums, db.execute(_SUMS + where, bound).fetchone())

    return read_journal(path, read, JournalSums())
