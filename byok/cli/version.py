"""byok version, and byok --version."""

import platform
from typing import Annotated

import typer

from byok import __version__
from byok.cli.output import say


def register(app: typer.Typer) -> None:
    """Add the command, and the option of the program."""
    app.command(name="version")(version)
    app.callback()(_program)


def version() -> None:
    """Print the versions of byok and Python."""
    say(f"byok {__version__} (Python {platform.python_version()})")


def _option(given: bool) -> None:
    if given:
        version()
        raise typer.Exit


def _program(
    shown: Annotated[
        bool,
        typer.Option(
            "--version", callback=_option, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Bring your own key: a local daemon between Augment clients and any model."""
