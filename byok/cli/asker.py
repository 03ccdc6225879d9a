"""Who answers the questions of a command: a person, --yes, or nobody."""

import sys
from typing import Annotated, Protocol

import typer

from byok.core.errors import ConfigError

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


class Asker(Protocol):
    """Answers questions. Ctrl-C and the end of input raise click's Abort."""

    @property
    def is_person(self) -> bool:
        """Whether somebody sits at a terminal, so that keys can be asked for."""

    @property
    def takes_best(self) -> bool:
        """Whether the best of several is taken without a question."""

    def confirm(self, question: str, *, default: bool = True) -> bool:
        """Return yes or no."""

    def text(self, question: str, default: str) -> str:
        """Return a line; `default` is for an empty one, "" for none."""

    def secret(self, question: str) -> str:
        """Return a line that is not shown while it is typed."""


class PersonAsker:
    """Asks at the terminal."""

    is_person, takes_best = True, False

    def confirm(self, question: str, *, default: bool = True) -> bool:
        """See Asker."""
        return bool(typer.confirm(question, default=default))

    def text(self, question: str, default: str) -> str:
        """See Asker."""
        return str(typer.prompt(question, default=default or None)).strip()

    def secret(self, question: str) -> str:
        """See Asker."""
        return str(typer.prompt(question, hide_input=True))


class YesAsker:
    """Takes what is proposed, as --yes says."""

    is_person, takes_best = False, True

    def confirm(self, question: str, *, default: bool = True) -> bool:
        """See Asker."""
        del question
        return default

    def text(self, question: str, default: str) -> str:
        """See Asker.

        Raises:
            ConfigError: nothing is proposed.
        """
        if not default:
            raise ConfigError(f"--yes cannot answer this: {question}")
        return default

    def secret(self, question: str) -> str:
        """See Asker.

        Raises:
            ConfigError: always; no key can be proposed.
        """
        return self.text(question, "")


class NobodyAsker:
    """Cannot be asked, so nothing that needs a question is done."""

    is_person, takes_best = False, False

    def __init__(self, command: str) -> None:
        """Take the command that a script has to run instead."""
        self._command = command

    def confirm(self, question: str, *, default: bool = True) -> bool:
        """See Asker.

        Raises:
            ConfigError: always, here and in the other methods.
        """
        raise ConfigError(
            f"There is no terminal to ask at: {question}",
            hint=f"In a script: {self._command}",
        )

    def text(self, question: str, default: str) -> str:
        """See Asker."""
        del default
        return str(self.confirm(question))

    def secret(self, question: str) -> str:
        """See Asker."""
        return str(self.confirm(question))


def find_asker(command: str, *, yes: bool) -> Asker:
    """Return who answers; `command` is what a script has to run without --yes."""
    if yes:
        return YesAsker()
    return PersonAsker() if sys.stdin.isatty() else NobodyAsker(command)


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
