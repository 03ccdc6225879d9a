"""byok token: show or replace the token that clients send."""

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


def default(context: typer.Context) -> None:
    """Show the token that clients send, or replace it."""
    if context.invoked_subcommand is None:
        show()


def show() -> None:
    """Print the token and nothing else."""
    from byok.daemon.token import read_token

    say(read_token(find_paths().token))


def rotate() -> None:
    """Replace the token; the old one stops working at once."""
    from byok.daemon.token import rotate_token

    say(rotate_token(find_paths().token))
    tell("The old token is no longer valid; update your clients' settings.")
