"""byok token: show or replace the token that clients send."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from byok.cli.control import refuse_stranger
from byok.cli.terminal import say, tell
from byok.core.daemon.token import read_token, rotate_token
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
    say(rotate_token(_file(metrics)))
    whose = "Prometheus' settings" if metrics else "your clients' settings"
    tell(f"The old token is no longer valid; update {whose}.")


def _file(metrics: bool) -> Path:
    paths = find_paths()
    return paths.metrics_token if metrics else paths.token
