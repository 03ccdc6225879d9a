"""byok version."""

import platform

import typer

from byok import __version__
from byok.cli.output import say


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="version")(version)


def version() -> None:
    """Print byok's version, and Python's."""
    say(f"byok {__version__} (Python {platform.python_version()})")
