"""byok log: show what became of requests, from the journal."""

import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from byok.cli.command_context import JsonOption
from byok.cli.journal_table import show_entries, tell_damage
from byok.cli.output import say_json, say_json_line, tell
from byok.core.platform.paths import find_paths
from byok.features.journal.reading import (
    LogFilter,
    StoredEntry,
    entries_since,
    highest_number,
    last_entries,
)

_LOOK_SECONDS = 0.5
_AT_ONCE = 500
_MOST = 100_000


def log(
    number: Annotated[
        int, typer.Option("-n", help="How many requests.", min=0, max=_MOST)
    ] = 20,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Show new ones, until Ctrl-C.")
    ] = False,
    errors: Annotated[bool, typer.Option("--errors", help="Only failures.")] = False,
    conversation: Annotated[
        str, typer.Option(help="Only this conversation.", metavar="ID")
    ] = "",
    everything: Annotated[
        bool,
        typer.Option("--all", help="Also requests that need no model."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show the latest requests: model, tokens, times, cost, and how they ended.

    They are read from byok's journal, so the daemon need not run. The beginning of a
    conversation's id is enough. With -f, --json prints one object per line.
    """
    journal = find_paths().journal
    begin = conversation.encode("utf-8", "replace").decode()
    wanted = LogFilter(errors, begin, everything)
    entries = last_entries(journal, number, wanted)
    tell_damage(journal)
    if follow:
        _follow(journal, wanted, entries, json=json)
    elif json:
        say_json([write_entry(stored) for stored in entries])
    elif entries:
        _show(entries)
    else:
        tell(f"byok: {journal} holds no such requests.")


def write_entry(stored: StoredEntry) -> dict[str, Any]:
    """Return a request for JSON: the columns of the journal by their names."""
    return {"id": stored.number, **stored.entry._asdict()}


def _show(
    entries: "Iterable[StoredEntry]", *, header: bool = True, goes_on: bool = False
) -> None:
    show_entries(entries, header=header, goes_on=goes_on)


def _follow(
    journal: Path,
    wanted: LogFilter,
    entries: "list[StoredEntry]",
    *,
    json: bool,
) -> None:
    """Print these requests, and new ones until Ctrl-C or until nobody reads."""
    seen, header = highest_number(journal), not json
    try:
        while True:
            if json:
                for stored in entries:
                    say_json_line(write_entry(stored))
            elif entries or header:
                _show(entries, header=header, goes_on=True)
            sys.stdout.flush()
            header = False
            seen = max([seen, *(stored.number for stored in entries)])
            time.sleep(_LOOK_SECONDS)
            if highest_number(journal) < seen:
                seen = 0  # a new file was begun
            entries = entries_since(journal, seen, _AT_ONCE, wanted)
    except KeyboardInterrupt:
        return
    except BrokenPipeError:  # such as: byok log -f | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
