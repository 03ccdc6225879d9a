"""byok disconnect: put a client's settings file back to what it was."""

from pathlib import Path

import typer

from byok.cli.client_files import (
    Answer,
    ClientArgument,
    DryRunOption,
    FileOption,
    ProfileOption,
    find_machine,
    make_change,
    open_connector,
    write_command,
)
from byok.cli.confirm import YesOption
from byok.cli.output import say, tell
from byok.client_settings.client_kind import ClientKind
from byok.errors import ConfigError
from byok.platform.paths import find_paths


def disconnect(
    client: ClientArgument,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    file: FileOption = None,
    profile: ProfileOption = "",
) -> None:
    """Undo `byok connect --write`: restore the client's previous settings file.

    If it was edited since, only byok's settings are removed, and their previous values
    restored.
    """
    from byok.client_settings.wanted_settings import FORMATS

    if client not in FORMATS:
        raise ConfigError(
            f"byok writes no file for {client.readable_name}.",
            hint="Take the settings out where you entered them.",
        )
    words = ("byok", "disconnect", client.value)
    command = write_command(*words, file=file, profile=profile)
    answer = Answer(yes, dry_run, command)
    _undo(client, file or _find_file(client, profile), answer)


def _undo(client: ClientKind, path: Path, answer: Answer) -> None:
    from byok.client_settings.setting import write_path
    from byok.redact import Redactor

    connector, redactor = open_connector(), Redactor()
    if (token := _find_token()) is not None:
        redactor.add(token)
    change = connector.plan_disconnect(client, path)
    path = change.file.path
    for setting in change.changed:
        tell(f"{write_path(setting)} was changed since; it stays as it is.")
    if not change.is_needed:
        if not answer.dry_run:
            connector.carry_out(change)
        say(f"There is nothing of byok's in {path}.")
        if change.file.raw is None:
            for kept in connector.backups.kept_copies(client, path):
                tell(f"The file is gone; what it was before byok is kept in {kept}")
        return
    if not change.is_exact:
        tell("The file was edited since, so only byok's settings are taken out.")
    if make_change(connector, change, redactor, answer):
        what = "was removed" if change.after is None else "no longer points at byok"
        say(f"{path} {what}.")
    elif not answer.dry_run:
        raise typer.Exit(1)


def _find_file(client: ClientKind, profile: str) -> Path:
    """Return the file that byok changed, or the usual one if it is no single one.

    Raises:
        ConfigError: byok changed several files, and none is the usual one.
    """
    from byok.client_settings.locations import find_location

    usual = find_location(client, find_machine(), profile).path
    known = open_connector().backups.list_paths(client)
    if profile or not known or usual.resolve() in known:
        return usual
    if len(known) > 1:
        raise ConfigError(
            f"byok changed several files: {', '.join(map(str, known))}.",
            hint="Name one: --file PATH",
        )
    return known[0]


def _find_token() -> str | None:
    """Return the client token, so that it can be hidden; it may be gone by now."""
    from byok.daemon.token import read_token

    path = find_paths().token
    return read_token(path) if path.exists() else None
