"""Commands that a feature answers by itself: byok and the feature's name."""

from collections.abc import Callable

import typer

from byok.cli.command_context import JsonOption
from byok.cli.control import EXIT_NOT_RUNNING
from byok.cli.daemon_client import ask_daemon
from byok.cli.terminal import say, say_json, tell
from byok.features import ROWS, FeatureRow


def __getattr__(name: str) -> Callable[[JsonOption], None]:
    for row in ROWS:
        if row.name == name and row.command:
            return _make_command(row)
    raise AttributeError(f"no feature has the command {name}")


def _make_command(row: FeatureRow) -> Callable[[JsonOption], None]:
    def command(json: JsonOption = False) -> None:
        answer = ask_daemon(row.name)
        if answer is None:
            tell("byok is not running. Start it: byok serve")
            raise typer.Exit(EXIT_NOT_RUNNING)
        if json:
            say_json(answer)
            return
        from byok.features.status import write_rows

        for line in write_rows(answer["rows"]):
            say(line)

    command.__doc__ = row.command
    return command
