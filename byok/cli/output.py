"""What commands print: text for people, JSON for scripts, errors with their cure."""

import sys
from collections.abc import Iterable
from typing import Any

import orjson

from byok.errors import ByokError

_PIPE_WIDTH = 10_000


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
    """Print a table that fits the terminal; in a pipe each row is one whole line."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table: Table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(Text(_printable(cell)) for cell in row))
    Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH).print(table)


def _printable(text: str) -> str:
    """Leave no escape sequence of an upstream to the terminal."""
    return "".join(char if char.isprintable() else "?" for char in text)
