"""Ask before something is done that cannot be taken back lightly."""

import sys
from typing import Annotated

import typer

from byok.errors import ConfigError

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def confirm(question: str, command: str) -> bool:
    """Ask the user; `command` is what a script has to run instead.

    Raises:
        ConfigError: there is no terminal to ask at.
    """
    if not sys.stdin.isatty():
        raise ConfigError(
            "There is no terminal to ask at, so nothing was done.",
            hint=f"In a script: {command} --yes",
        )
    return bool(typer.confirm(question))
