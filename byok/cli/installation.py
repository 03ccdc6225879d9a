"""byok upgrade and byok uninstall: update this installation, or remove it."""

import subprocess
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from byok.cli.completion import complete_extra
from byok.cli.connect import DryRunOption
from byok.cli.control import find_service, stop_daemon
from byok.cli.daemon_client import find_daemon
from byok.cli.terminal import YesOption, confirm, say, tell
from byok.clients.connection import open_connector
from byok.clients.locations import ClientKind
from byok.core.errors import ByokError, ConfigError, NotReady
from byok.core.platform.installation import (
    Installer,
    find_installation,
    find_link,
    list_extras,
    quote,
)
from byok.core.platform.paths import Paths, find_paths, list_own_files, remove_own_files
from byok.core.platform.programs import find_program
from byok.settings import load_settings
from byok.settings.keys.keyring_store import KeyringStore


def upgrade(
    extra: Annotated[
        str,
        typer.Option(
            help="Add an optional part, such as otel or qdrant.",
            metavar="X",
            autocompletion=complete_extra,
        ),
    ] = "",
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Bring the newest byok in the way in which this one was installed.

    A running daemon is restarted afterwards; its answers in progress are finished.
    With --extra, an optional part is added instead.
    """
    installation = find_installation()
    if extra and extra not in list_extras():
        extras = ", ".join(list_extras())
        hint = f"One of: {extras}."
        raise ConfigError(f"byok has no part called {extra}.", hint=hint)
    commands = (
        installation.extra_commands(extra) if extra else installation.upgrade_commands()
    )
    say(f"This adds {extra} to byok:" if extra else "This brings the newest byok:")
    for words in commands:
        say(f"    {_quote_words(words)}")
    if dry_run:
        return
    command = f"byok upgrade --extra {extra}" if extra else "byok upgrade"
    confirm("Run it?", command, yes=yes)
    for words in commands:
        _run(words)
    if find_daemon(find_paths(), 0) is not None:
        _run([str(installation.script), "restart"])


def _quote_words(words: list[str]) -> str:
    return " ".join(map(quote, words))


def _run(words: list[str]) -> None:
    """Run a command that the user agreed to, in this terminal.

    Raises:
        NotReady: its program is missing, or it failed.
    """
    name, *others = words
    program = name if Path(name).is_absolute() else find_program(name)
    if program is None:
        raise NotReady(f"{name} is not on the search path.", hint=f"Install {name}.")
    ended = subprocess.run([program, *others], check=False)  # noqa: S603 - shown before
    if ended.returncode:
        raise NotReady(
            f"`{_quote_words(words)}` ended with code {ended.returncode}.",
            hint="What it printed says why. The running byok was not touched.",
        )


class Removal(Struct, frozen=True):
    """One thing that byok put on this machine, and the function that removes it."""

    subject: str
    carry_out: Callable[[], object]


def uninstall(
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    keep_keys: Annotated[
        bool, typer.Option("--keep-keys", help="Leave the keys in the keyring.")
    ] = False,
    keep_settings: Annotated[
        bool, typer.Option("--keep-settings", help="Leave settings and prompts.")
    ] = False,
) -> None:
    """Remove byok from this machine: show everything it would remove, ask, and do it.

    These are its settings in your editors (what they were before comes back), its
    service, the stored keys, its folders, and the program. A clone stays where it is.
    """
    paths = find_paths()
    others = [*list_client_settings(paths), *_list_service(paths)]
    others += [] if keep_keys else _list_keys(paths)
    exceptions = {paths.vault, paths.vault_key} if keep_keys else set()

    def list_files() -> list[Path]:
        files = list_own_files(paths, with_settings=not keep_settings)
        return [path for path in files if path not in exceptions]

    program = _list_program()
    say("byok would remove:")
    for removal in others:
        say(f"    {removal.subject}")
    for path in list_files():
        say(f"    {path}")
    for removal in program:
        say(f"    {removal.subject}")
    if dry_run:
        return
    confirm("Remove all of this?", "byok uninstall", yes=yes)
    if undo(others):
        raise ConfigError(
            "Not everything could be removed, so byok's own files stay for now.",
            hint="Do what the lines above say, then run `byok uninstall` again.",
        )
    stop_daemon(paths)
    _remove_own(paths, list_files())  # again: the steps above may have added files
    for removal in program:
        removal.carry_out()
    say("byok is removed.")
    installation = find_installation()
    if installation.installer is Installer.CHECKOUT:
        tell(f"Its clone stays; remove it yourself: {installation.source}")


def _remove_own(paths: Paths, files: list[Path]) -> None:
    """Remove byok's files, except backups of editors' files that could not go back."""
    if any(path.is_file() for path in paths.client_backups.rglob("*")):
        files = [path for path in files if path != paths.client_backups]
        tell(f"What editors' files were before byok stays in {paths.client_backups}")
    for folder in remove_own_files(paths, files):
        tell(f"{folder} stays: it holds other files.")


def undo(removals: Iterable[Removal]) -> bool:
    """Carry out removals, reporting failures; return whether any failed."""
    failed = False
    for removal in removals:
        try:
            removal.carry_out()
        except (ByokError, OSError) as error:
            failed = True
            cause = error.sentence if isinstance(error, ByokError) else str(error)
            tell(f"{removal.subject}: {cause}")
    return failed


def list_client_settings(paths: Paths) -> Iterator[Removal]:
    """Yield the removals of byok's lines from every settings file that it wrote to."""
    connector = open_connector(paths)
    for client in (kind for kind in ClientKind if kind.facts.format):
        for path in connector.backups.list_paths(client):
            restore = partial(connector.disconnect, client, path)
            yield Removal(f"byok's lines in {path}", restore)


def _list_service(paths: Paths) -> Iterator[Removal]:
    service = find_service(paths)
    if service.is_installed() and not service.is_for_others():
        files = ", ".join(str(path) for path in service.system.paths)
        yield Removal(f"the service ({files})", service.uninstall)


def _list_keys(paths: Paths) -> Iterator[Removal]:
    """Yield the removals of the keys in the OS keyring that byok can find.

    A keyring does not list what it has, so keys of upstreams that the settings no
    longer name cannot be found.
    """
    from byok.wiring.key_sources import all_key_lookups

    ring = KeyringStore()
    try:
        settings = load_settings(paths.config)
        for lookup in all_key_lookups(settings, settings.upstreams):
            if ring.get(lookup.entry) is not None:
                subject = f"the key of {lookup.title} in the OS keyring"
                yield Removal(subject, partial(ring.remove, lookup.entry))
    except ByokError as error:
        tell(f"The OS keyring was not read: {error}")


def _list_program() -> list[Removal]:
    installation = find_installation()
    removals = [
        Removal(_quote_words(words), partial(_run, words))
        for words in installation.removal_commands()
    ]
    if link := find_link(installation):
        removals.append(Removal(str(link), link.unlink))
    return removals
