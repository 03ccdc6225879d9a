"""What commands print: text for people, JSON for scripts, errors with their cure."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import orjson

from byok.errors import ByokError

if TYPE_CHECKING:
    pass


def say(text: str = "") -> None:
    """Print a line for the caller."""
    sys.stdout.write(text + "\n")


def tell(text: str) -> None:
    """Print a remark that no script should read."""
    sys.stderr.write(text + "\n")


def say_json(value: Any) -> None:
    """Print a value for a script."""
    say(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def fail(error: ByokError) -> None:
    """Print what went wrong and what to do."""
    tell(f"byok: {error}")
    if error.hint:
        tell(f"  {error.hint}")


def say_table(*columns: str, rows: Iterable[tuple[str, ...]]) -> None:
    """Print a table that fits the terminal."""
    from rich.console import Console
    from rich.table import Table

    table: Table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*row)
    Console(soft_wrap=not sys.stdout.isatty()).print(table)
