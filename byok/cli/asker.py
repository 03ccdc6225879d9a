"""Who answers the questions of a command: a person, --yes, or nobody."""

import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from byok.core.errors import ConfigError

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@dataclass
class Asker:
    """Answers questions. Ctrl-C and the end of input raise click's Abort.

    A person sits at a terminal; else what is proposed is taken, as --yes says; else
    nobody can be asked, so nothing that needs a question is done: `command` is what a
    script has to run instead.
    """

    command: str = ""
    is_person: bool = False
    takes_best: bool = False

    def confirm(self, question: str, *, default: bool = True) -> bool:
        """Return yes or no.

        Raises:
            ConfigError: nobody can be asked, here and in the other methods.
        """
        if self.is_person:
            return bool(typer.confirm(question, default=default))
        if self.takes_best:
            return default
        raise ConfigError(
            f"There is no terminal to ask at: {question}",
            hint=f"In a script: {self.command}",
        )

    def text(self, question: str, default: str) -> str:
        """Return a line; `default` is for an empty one, "" for none.

        Raises:
            ConfigError: nothing is proposed that could be taken.
        """
        if self.is_person:
            return str(typer.prompt(question, default=default or None)).strip()
        if self.takes_best and not default:
            raise ConfigError(f"--yes cannot answer this: {question}")
        self.confirm(question)
        return default

    def secret(self, question: str) -> str:
        """Return a line that is not shown while it is typed.

        Raises:
            ConfigError: there is no person; no key can be proposed.
        """
        if self.is_person:
            return str(typer.prompt(question, hide_input=True))
        return self.text(question, "")


def find_asker(command: str, *, yes: bool) -> Asker:
    """Return who answers; `command` is what a script has to run without --yes."""
    return Asker(command, is_person=not yes and sys.stdin.isatty(), takes_best=yes)


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
