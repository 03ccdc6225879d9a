"""byok token: show or replace the token that clients send."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from byok.cli.output import say, tell
from byok.platform.paths import find_paths


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(help="Show or replace the token that clients send.")
    group.callback(invoke_without_command=True)(default)
    group.command(name="show")(show)
    group.command(name="rotate")(rotate)
    app.add_typer(group, name="token")


_MetricsOption: TypeAlias = Annotated[
    bool, typer.Option("--metrics", help="The token for /metrics only.")
]


def default(context: typer.Context, metrics: _MetricsOption = False) -> None:
    """Show the token that clients send, or replace it."""
    if context.invoked_subcommand is None:
        show(metrics)
    elif metrics:
        raise typer.BadParameter("write --metrics behind show or rotate")


def show(metrics: _MetricsOption = False) -> None:
    """Print the token and nothing else."""
    from byok.cli.ensure_service import refuse_stranger
    from byok.daemon.token import read_token

    if not metrics:
        refuse_stranger(find_paths())
    say(read_token(_file(metrics)))


def rotate(metrics: _MetricsOption = False) -> None:
    """Replace the token; the old one stops working at once."""
    from byok.daemon.token import rotate_token

    say(rotate_token(_file(metrics)))
    whose = "Prometheus' settings" if metrics else "your clients' settings"
    tell(f"The old token is no longer valid; update {whose}.")


def _file(metrics: bool) -> Path:
    paths = find_paths()
    return paths.metrics_token if metrics else paths.token
