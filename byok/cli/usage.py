"""byok usage: add up what was asked of models, and what that cost."""

import csv
import sys
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated

import typer

from byok.cli.command_context import JsonOption
from byok.cli.log import tell_damage
from byok.cli.output import count_noun, say_json, say_table, tell
from byok.core.errors import ConfigError
from byok.core.escapes import escape
from byok.core.platform.paths import find_paths
from byok.features.cost import write_cost
from byok.features.journal.usage import UsageRow, add_rows, sum_usage

_COLUMNS = ("requests", "failed", "in", "cached", "out", "cost")
_MOST_SHOWN = 50
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would compute


class GroupBy(StrEnum):
    """What one row of the sums stands for."""

    DAY = "day"
    MODEL = "model"
    CONVERSATION = "conversation"
    CLIENT = "client"


def usage(
    by: Annotated[GroupBy, typer.Option(help="What each row is about.")] = (
        GroupBy.DAY
    ),
    days: Annotated[
        int, typer.Option(help="Number of days, today included.", min=1, max=3650)
    ] = 30,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print comma-separated values.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Add up requests to models, their tokens and their cost in US dollars.

    A cost is known if the model's prices are (byok models). Totals leave out unknown
    costs, and say for how many requests.
    """
    if as_csv and json:
        raise ConfigError("--csv and --json cannot be used together.")
    journal = find_paths().journal
    rows = sum_usage(journal, by.value, _begin(days))
    tell_damage(journal)
    if json:
        total = add_rows(rows)._asdict()
        listed = [row._asdict() for row in rows]
        say_json({"by": by.value, "days": days, "rows": listed, "total": total})
    elif as_csv:
        _write_csv(by, rows)
    elif rows:
        _show(by, rows, add_rows(rows))
    else:
        tell(f"byok: {journal} holds no requests to models of this period.")


def _begin(days: int) -> float:
    """Return the midnight with which the first day begins."""
    today = datetime.now().replace(hour=0, minute=0, second=0, microsecond=0)
    return (today - timedelta(days=days - 1)).timestamp()


def _show(by: GroupBy, rows: "list[UsageRow]", total: UsageRow) -> None:
    shown = rows[-_MOST_SHOWN:] if by is GroupBy.DAY else rows[:_MOST_SHOWN]
    table = [_cells(row) for row in (*shown, total)]
    say_table(by.value, *_COLUMNS, rows=table, right=_COLUMNS)
    if left_out := len(rows) - len(shown):
        tell(f"byok: {left_out} more rows are in the total; --csv prints all.")
    if total.uncounted:
        requests = count_noun(total.uncounted, "request")
        tell(f"byok: the tokens of {requests} are not known.")


def _cells(row: UsageRow) -> tuple[str, ...]:
    return (
        row.key or "(none)",
        f"{row.requests:,}",
        f"{row.failed:,}" if row.failed else "",
        f"{row.input_tokens:,}",
        _cache(row),
        f"{row.output_tokens:,}",
        write_cost(row.cost, row.unpriced),
    )


def _cache(row: UsageRow) -> str:
    unknown = row.input_tokens > 0 and not row.cache_input_tokens
    return "?" if unknown else f"{row.cache_read_tokens:,}"


def _write_csv(by: GroupBy, rows: "list[UsageRow]") -> None:
    """Print all rows; a name that begins like a formula is marked as text."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow((by.value, *UsageRow._fields[1:]))
    for row in rows:
        key = escape(row.key)
        writer.writerow((f"'{key}" if key.startswith(_FORMULA) else key, *row[1:]))
