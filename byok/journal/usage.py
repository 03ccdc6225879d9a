"""Adds up requests to models, their tokens and cost, by day, model and so on."""

import operator
import sqlite3
import sys
from pathlib import Path
from typing import NamedTuple

from byok.journal.cost import FREE_FAILURES
from byok.journal.reader import read_journal
from byok.journal.rows import select_rows

# Our own words in SQL, by what users may ask for.
GROUPS = {
    "day": "date(started, 'unixepoch', 'localtime')",
    "model": "'byok:' || upstream || ':' || model",
    "conversation": "conversation",
    "client": "client",
}
_FREE = ", ".join(f"'{name}'" for name in sorted(FREE_FAILURES))
SUMS = f"""count(*), total(outcome = 'failed'), total(input_tokens IS NULL
        AND attempts > 0 AND (first_byte NOT NULL OR error_class NOT IN ({_FREE}))),
    total(input_tokens), total(output_tokens), total(cache_read_tokens),
    total(cache_written_tokens), total(cost), total(cost IS NULL),
    total(iif(cache_read_tokens IS NULL, 0, input_tokens))"""


class UsageTable(NamedTuple):
    """The largest groups, how many more there are, and the sum of all."""

    rows: list["UsageRow"]
    more: int
    total: "UsageRow"


class UsageRow(NamedTuple):
    """The sums of one group.

    `failed` requests are among `requests`. `uncounted` are those that took tokens, but
    no upstream told how many; `unpriced` are those whose `cost` in US dollars is
    unknown. The sums are without them. `cache_input_tokens` is the part of the input
    whose upstreams told what came from a cache.
    """

    key: str
    requests: int = 0
    failed: int = 0
    uncounted: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_written_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    cache_input_tokens: int = 0


def sum_usage(path: Path, by: str, since: float) -> list[UsageRow]:
    """Return the sums of all requests that asked a model, one row for each group.

    `by` is one of GROUPS, `since` are seconds since 1970. Days are in order; other
    groups are, by cost and tokens, the largest first.

    Raises:
        CannotStart: the journal cannot be read.
    """
    return top_usage(path, by, since, sys.maxsize).rows


def top_usage(path: Path, by: str, since: float, most: int) -> UsageTable:
    """Return the sums as `sum_usage` does, but only the first `most` rows.

    Raises:
        CannotStart: the journal cannot be read.
    """
    order = "1" if by == "day" else "total(cost) DESC, total(input_tokens) DESC, 1"
    query = (
        f"SELECT {GROUPS[by]}, {SUMS} FROM request "  # noqa: S608 - our own words
        f"WHERE started >= ? AND model <> '' GROUP BY 1 ORDER BY {order}"
    )

    def read(db: sqlite3.Connection) -> UsageTable:
        rows, more, total = list[UsageRow](), 0, UsageRow("total")
        for row in select_rows(db, UsageRow, query, (since,)):
            total = add_rows([total, row])
            if len(rows) < most:
                rows.append(row)
            else:
                more += 1
        return UsageTable(rows, more, total)

    return read_journal(path, read, UsageTable([], 0, UsageRow("total")))


def add_rows(rows: list[UsageRow]) -> UsageRow:
    """Return the sum of all rows, with the key "total"."""
    total = UsageRow("total")
    for _, *numbers in rows:
        added = map(operator.add, total[1:], numbers)
        total = UsageRow._make(("total", *added))
    return total
