"""byok log and byok usage: requests from the journal, one by one and added up."""

import csv
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import StrEnum
from itertools import chain
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Any

import typer

from byok.cli.command_context import JsonOption
from byok.cli.terminal import (
    count_noun,
    discard_output,
    say_json,
    say_table,
    tell,
)
from byok.core.errors import ConfigError
from byok.core.escapes import escape
from byok.core.language import translate
from byok.core.platform.paths import find_paths
from byok.features.cost import write_cost, write_dollars
from byok.features.journal.entry import JournalEntry
from byok.features.journal.reader import count_damaged
from byok.features.journal.requests import (
    LogFilter,
    StoredEntry,
    entries_since,
    highest_number,
    last_entries,
)
from byok.features.journal.usage import UsageRow, add_rows, days_before, sum_usage

_POLL_SECONDS = 0.5
_BATCH_SIZE = 500
_MAX_REQUESTS = 100_000
# The columns of `byok log`, and their least widths where a table is continued.
_WIDTHS = {
    "time": 14,
    "request": 10,
    "model": 16,
    "in": 8,
    "cached": 8,
    "out": 6,
    "first": 7,
    "took": 7,
    "cost": 9,
    "end": 9,
    "chat": 8,
    "tools": 40,
}
_RIGHT = ("in", "cached", "out", "first", "took", "cost")
# Columns that a narrow terminal lacks, and the width from which they are shown.
_MIN_TERMINAL_WIDTHS = {"cached": 124, "first": 124, "chat": 124, "tools": 166}
_UNKNOWN = "?"
_MAX_TOOLS_CHARS = 40
_ID_CHARS = 8  # of a conversation; the beginning is enough to ask for it
_USAGE_COLUMNS = ("requests", "failed", "in", "cached", "out", "cost")
_MAX_USAGE_ROWS = 50
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first signs that a spreadsheet computes


def log(
    number: Annotated[
        int, typer.Option("-n", help="How many requests.", min=0, max=_MAX_REQUESTS)
    ] = 20,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Show new ones, until Ctrl-C.")
    ] = False,
    errors: Annotated[bool, typer.Option("--errors", help="Only failures.")] = False,
    conversation: Annotated[
        str, typer.Option(help="Only this conversation.", metavar="ID")
    ] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="Also requests that need no model.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show the latest requests: model, tokens, times, cost, and how they ended.

    They are read from byok's journal, so the daemon need not run. The beginning of a
    conversation's id is enough. With -f, --json prints one object per line.
    """
    journal = find_paths().journal
    id_prefix = conversation.encode("utf-8", "replace").decode()
    log_filter = LogFilter(errors, id_prefix, everything)
    entries = last_entries(journal, number, log_filter)
    tell_damage(journal)
    if follow:
        _follow(journal, log_filter, entries, json=json)
    elif json:
        say_json([write_entry(stored) for stored in entries])
    elif entries:
        show_entries(entries)
    else:
        tell(f"byok: {journal} holds no such requests.")
        if not highest_number(journal):
            tell("No client has asked yet: byok connect vscode --write")


def write_entry(stored: StoredEntry) -> dict[str, Any]:
    """Return a request for JSON: the columns of the journal by their names."""
    return {"id": stored.number, **stored.entry._asdict()}


def _follow(
    journal: Path, log_filter: LogFilter, entries: "list[StoredEntry]", *, json: bool
) -> None:
    """Print these requests, then new ones until Ctrl-C or until stdout is closed."""
    last, header = highest_number(journal), not json
    last = max([last, *(stored.number for stored in entries)])
    new = follow_entries(journal, last, log_filter)
    try:
        for batch in chain([entries], new):
            if json:
                for stored in batch:
                    say_json(write_entry(stored), one_line=True)
            elif batch or header:
                show_entries(batch, header=header, goes_on=True)
            sys.stdout.flush()
            header = False
    except KeyboardInterrupt:
        return
    except BrokenPipeError:  # such as: byok log -f | head
        discard_output(sys.stdout)


def follow_entries(
    journal: Path, last: int, log_filter: LogFilter
) -> Iterator[list[StoredEntry]]:
    """Yield the requests after the number `last` as they end, forever.

    Raises:
        CannotStart: the journal cannot be read.
    """
    while True:
        if highest_number(journal) < last:
            last = 0  # the journal was replaced by a new file
        if entries := entries_since(journal, last, _BATCH_SIZE, log_filter):
            last = entries[-1].number
            yield entries
        else:
            time.sleep(_POLL_SECONDS)


def show_entries(
    entries: "Iterable[StoredEntry]", *, header: bool = True, goes_on: bool = False
) -> None:
    """Print requests as a table; if it `goes_on`, columns have fixed least widths."""
    width = get_terminal_size().columns if sys.stdout.isatty() else 1000
    columns = [name for name in _WIDTHS if _MIN_TERMINAL_WIDTHS.get(name, 0) <= width]
    cells = (_cells(stored.entry) for stored in entries)
    say_table(
        *columns,
        rows=[tuple(row[name] for name in columns) for row in cells],
        right=_RIGHT,
        widths=_WIDTHS if goes_on else None,
        header=header,
    )


def tell_damage(journal: Path) -> None:
    """Report how many damaged requests were left out, if any."""
    if count := count_damaged(journal):
        damaged = count_noun(count, "damaged request")
        tell(f"byok: {journal} is shown without {damaged}.")


def _cells(entry: JournalEntry) -> dict[str, str]:
    was_sent = entry.attempts > 0  # to a model; else no token counts can be expected
    cost = _UNKNOWN if entry.cost is None else write_dollars(entry.cost)
    model = ":".join(part for part in (entry.upstream, entry.model) if part)
    return {
        "time": f"{datetime.fromtimestamp(entry.started):%m-%d %H:%M:%S}",
        "request": entry.purpose or entry.endpoint.strip("/"),
        "model": model or entry.model_asked,
        "in": _count(entry.input_tokens, was_sent=was_sent),
        "cached": _count(entry.cache_read_tokens, was_sent=was_sent),
        "out": _count(entry.output_tokens, was_sent=was_sent),
        "first": "" if entry.first_byte is None else _seconds(entry.first_byte),
        "took": _seconds(entry.seconds),
        "cost": cost if was_sent or entry.model else "",
        "end": entry.error or entry.outcome,
        "chat": entry.conversation[:_ID_CHARS],
        "tools": _tools(entry),
    }


def _tools(entry: JournalEntry) -> str:
    """Return the loop that a turn was in, and the tools that its answer called."""
    text = ", ".join(part for part in (entry.loop, entry.tool_calls) if part)
    is_long = len(text) > _MAX_TOOLS_CHARS
    return f"{text[: _MAX_TOOLS_CHARS - 3]}..." if is_long else text


def _count(tokens: int | None, *, was_sent: bool) -> str:
    if tokens is None:
        return _UNKNOWN if was_sent else ""
    return f"{tokens:,}"


def _seconds(seconds: float) -> str:
    return f"{seconds:,.2f} s" if seconds < 100 else f"{seconds:,.0f} s"


class GroupBy(StrEnum):
    """What the requests of one row of `byok usage` have in common."""

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
    rows = sum_usage(journal, by.value, days_before(time.time(), days - 1))
    tell_damage(journal)
    if json:
        total = add_rows(rows)._asdict()
        listed = [row._asdict() for row in rows]
        say_json({"by": by.value, "days": days, "rows": listed, "total": total})
    elif as_csv:
        _write_csv(by, rows)
    elif rows:
        _show_usage(by, rows, add_rows(rows))
    else:
        tell(f"byok: {journal} holds no requests to models of this period.")


def _show_usage(by: GroupBy, rows: "list[UsageRow]", total: UsageRow) -> None:
    latest = by is GroupBy.DAY
    visible = rows[-_MAX_USAGE_ROWS:] if latest else rows[:_MAX_USAGE_ROWS]
    total_row = total._replace(key=translate(total.key))
    table = [_usage_cells(row) for row in (*visible, total_row)]
    say_table(by.value, *_USAGE_COLUMNS, rows=table, right=_USAGE_COLUMNS)
    if hidden := len(rows) - len(visible):
        tell(f"byok: {hidden} more rows are in the total; --csv prints all.")
    if total.uncounted:
        requests = count_noun(total.uncounted, "request")
        tell(f"byok: the tokens of {requests} are not known.")


def _usage_cells(row: UsageRow) -> tuple[str, ...]:
    is_unknown = row.input_tokens > 0 and not row.cache_input_tokens
    return (
        row.key or "(none)",
        f"{row.requests:,}",
        f"{row.failed:,}" if row.failed else "",
        f"{row.input_tokens:,}",
        "?" if is_unknown else f"{row.cache_read_tokens:,}",
        f"{row.output_tokens:,}",
        write_cost(row.cost, row.unpriced),
    )


def _write_csv(by: GroupBy, rows: "list[UsageRow]") -> None:
    """Print all rows; a name that starts like a formula is quoted for spreadsheets."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow((by.value, *UsageRow._fields[1:]))
    for row in rows:
        key = escape(row.key)
        writer.writerow((f"'{key}" if key.startswith(_FORMULA) else key, *row[1:]))
