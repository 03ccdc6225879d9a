"""byok token: show or replace the token that clients send."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from byok.cli.connect import write_command
from byok.cli.control import refuse_stranger
from byok.cli.terminal import say, tell
from byok.clients.connection import DaemonAddress, open_connector
from byok.clients.locations import ClientKind
from byok.core.daemon.token import read_token, rotate_token
from byok.core.errors import ConfigError
from byok.core.platform.paths import find_paths

_MetricsOption: TypeAlias = Annotated[
    bool, typer.Option("--metrics", help="The token for /metrics only.")
]
commands = typer.Typer()


@commands.callback(invoke_without_command=True)
def default(context: typer.Context, metrics: _MetricsOption = False) -> None:
    """Show or replace the token that clients send."""
    if context.invoked_subcommand is None:
        show(metrics)
    elif metrics:
        raise typer.BadParameter("write --metrics behind show or rotate")


@commands.command("show")
def show(metrics: _MetricsOption = False) -> None:
    """Print the token and nothing else."""
    if not metrics:
        refuse_stranger(find_paths())
    say(read_token(_file(metrics)))


@commands.command("rotate")
def rotate(metrics: _MetricsOption = False) -> None:
    """Replace the token; the old one stops working at once."""
    token = rotate_token(_file(metrics))
    say(token)
    whose = "Prometheus' settings" if metrics else "your clients' settings"
    tell(f"The old token is no longer valid; update {whose}.")
    if not metrics:
        _tell_old_copies(token)


def _tell_old_copies(token: str) -> None:
    """Print how to renew each settings file that byok wrote the old token into."""
    paths = find_paths()
    connector, address = open_connector(paths), DaemonAddress("-", token, paths.token)
    for client in ClientKind:
        try:
            for path, mcp in connector.find_old_tokens(client, address):
                words = ("connect", client.value, *(["--mcp"] if mcp else []))
                command = write_command("byok", *words, "--write", file=path)
                tell(f"{path} has the old one. To renew it: {command}")
        except ConfigError as error:
            tell(error.sentence)


def _file(metrics: bool) -> Path:
    paths = find_paths()
    return paths.metrics_token if metrics else paths.token
