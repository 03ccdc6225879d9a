"""Show a change of a client's settings file, ask, and make it."""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from byok.cli.asker import Asker
from byok.cli.confirm import confirm
from byok.cli.output import say, tell
from byok.client_settings.client_kind import ClientKind
from byok.platform.paths import Paths, find_paths

if TYPE_CHECKING:
    from byok.client_settings.connection import FileChange, FileConnector
    from byok.client_settings.locations import ClientMachine
    from byok.redact import Redactor

ClientArgument = Annotated[ClientKind, typer.Argument(help="Which client.")]
FileOption = Annotated[
    Path | None,
    typer.Option("--file", help="Its settings file, if elsewhere.", metavar="PATH"),
]
ProfileOption = Annotated[
    str, typer.Option("--profile", help="Id of a profile of VS Code.", metavar="ID")
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show the change without writing.")
]


class Answer(NamedTuple):
    """How a change is to be made: at once, not at all, or after a question.

    `asker` asks with yes as the proposal; without one, the proposal is no.
    """

    yes: bool
    dry_run: bool
    command: str
    asker: Asker | None = None

    def allows(self, question: str) -> bool:
        """Return whether the change may be made; ask if that is open."""
        if self.yes:
            return True
        if self.asker:
            return self.asker.confirm(question)
        return confirm(question, self.command)


def write_command(*words: str, **options: object) -> str:
    """Write a command of byok with the options that were given, for a shell."""
    given = [(f"--{name}", str(value)) for name, value in options.items() if value]
    return shlex.join([*words, *(word for pair in given for word in pair)])


def find_machine() -> "ClientMachine":
    """Return what tells where programs keep their settings."""
    from byok.client_settings.locations import ClientMachine
    from byok.client_settings.run_place import find_run_place

    place = find_run_place(os.environ)
    return ClientMachine(sys.platform, os.environ, Path.home(), place)


def open_connector(paths: Paths | None = None) -> "FileConnector":
    """Return what changes settings files of this user."""
    from byok.client_settings.backups import BackupStore
    from byok.client_settings.connection import FileConnector

    store = BackupStore((paths or find_paths()).client_backups)
    return FileConnector(store, Path.home(), windows=sys.platform == "win32")


def make_change(
    connector: "FileConnector",
    change: "FileChange",
    redactor: "Redactor",
    answer: Answer,
) -> bool:
    """Show a change, ask, make it; return whether it was made.

    Raises:
        ConfigError: there is no terminal to ask at, or it cannot be made.
    """
    from byok.client_settings.preview import preview_change

    path = change.file.path
    for line in preview_change(str(path), change.file.raw, change.after, redactor):
        say(line)
    if answer.dry_run:
        tell("Nothing was written.")
        return False
    verb = "Remove" if change.after is None else "Write"
    if not answer.allows(f"{verb} {path}?"):
        tell("Nothing was written.")
        return False
    connector.carry_out(change)
    return True
