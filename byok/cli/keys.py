"""byok keys: store, list, test and remove API keys, and choose where one is stored."""

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from byok.cli.command_context import (
    ConfigOption,
    JsonOption,
    ask_or_do,
    load,
    with_services,
)
from byok.cli.completion import complete_key_name
from byok.cli.daemon_client import ask_daemon
from byok.cli.terminal import (
    Asker,
    find_asker,
    say,
    say_json,
    say_table,
    show_progress,
    tell,
)
from byok.core.chat import Json
from byok.core.errors import BadRequest, ByokError, ConfigError, KeyMissing
from byok.core.platform.paths import Paths
from byok.core.routing import OFFICIAL, Service
from byok.settings.keys import KeyLadder, KeyLookup, clean_key, fingerprint
from byok.settings.keys.keyring_store import KeyringStore
from byok.settings.keys.vault import Vault

if TYPE_CHECKING:
    from byok.wiring.services import Services


class KeyStore(StrEnum):
    """Where a key is stored; `key-file` is the vault, opened by byok's key file."""

    KEYRING = "keyring"
    VAULT = "vault"
    KEY_FILE = "key-file"


NameArgument = Annotated[
    str,
    typer.Argument(
        help="A preset, an upstream from the settings, one of its key_names as "
        "UPSTREAM/NAME, official, search-server, web-search, team-index, or "
        "team-index/salt.",
        autocompletion=complete_key_name,
    ),
]
StoreOption = Annotated[
    KeyStore | None,
    typer.Option(
        help="The OS keyring, or an encrypted file: opened by a passphrase (vault), or "
        "by a file that only you can read (key-file). By default, one that works here."
    ),
]
commands = typer.Typer(no_args_is_help=True)


def open_vault(paths: Paths) -> Vault:
    """Return the vault; it asks for its passphrase if there is a terminal."""
    asker = find_asker("", yes=False)

    def ask() -> str:
        question = "Passphrase of the encrypted file"
        return asker.secret(question, is_new=not paths.vault.exists())

    return Vault(
        paths.vault, ask=ask if asker.is_person else None, key_file=paths.vault_key
    )


def choose_store(
    lookup: KeyLookup, keyring: KeyringStore, vault: Vault, asker: Asker
) -> KeyringStore | Vault:
    """Return a store that works on this machine, before the key is asked for.

    That is the OS keyring, or else the encrypted file if there is one already. Without
    both, a person chooses how a new encrypted file is opened.

    Raises:
        KeyMissing: no store works, and nobody can be asked, or the person declines.
        ConfigError: the encrypted file cannot be opened.
    """
    try:
        keyring.backend()
    except ConfigError as error:
        reason = str(error)
    else:
        return keyring
    if vault.open():
        return vault
    cure = (
        f"Run: byok keys set {lookup.command_name} --store key-file (or --store vault, "
        f"with a passphrase), or set {lookup.own_env}, or the systemd credential "
        f"{lookup.credential}."
    )
    refusal = KeyMissing(
        f"The key of {lookup.title} cannot be stored: {reason}.", hint=cure
    )
    if not asker.is_person:
        raise refusal
    tell(f"The key cannot go into the OS keyring: {reason}. Instead, byok can use")
    tell(
        "  1  an encrypted file that a key file of mode 600 opens. Services and "
        "restarts need no passphrase. Whoever gets only the encrypted file reads "
        "nothing; whoever can read all files of your account reads the key."
    )
    tell(
        "  2  an encrypted file that a passphrase opens. A service or daemon needs it "
        "at each start, in BYOK_VAULT_PASSPHRASE."
    )
    tell(
        f"  3  nothing: you set {lookup.own_env}, or the systemd credential "
        f"{lookup.credential}, yourself."
    )
    while (answer := asker.text("Which one?", "1")) not in ("1", "2", "3"):
        tell("Type 1, 2 or 3.")
    if answer == "3":
        raise refusal
    if answer == "1":
        vault.create_key_file()
    return vault


def ask_for_key(lookup: KeyLookup, asker: Asker) -> str:
    """Ask a person for a key, without showing the input."""
    return asker.secret(f"Key for {lookup.title} ({lookup.origin}), not shown")


@commands.command("set", context_settings={"allow_extra_args": True})
def set_key(
    context: typer.Context,
    name: NameArgument,
    store: StoreOption = None,
    config: ConfigOption = None,
) -> None:
    """Store a key; it is prompted for without echo, or read from standard input."""
    if context.args:
        raise ConfigError(
            "A key is no part of the command: your shell would keep it in its history. "
            "Nothing was stored.",
            hint=f"It asks for the key: byok keys set {name}",
        )
    from byok.wiring.key_sources import key_named

    settings, paths = load(config)
    lookup = key_named(name, settings)
    asker = find_asker(
        f"byok keys set {lookup.command_name} --store key-file", yes=False
    )
    key_store = _open_store(store, lookup, paths, asker)
    key = clean_key(
        ask_for_key(lookup, asker) if asker.is_person else sys.stdin.readline()
    )
    key_store.set(lookup.entry, key)
    _reload_daemon()
    say(
        f"Stored the key of {lookup.title} for {lookup.origin} "
        f"(fingerprint {fingerprint(key)}) in the {key_store.label}."
    )


@commands.command("list")
def list_keys(json: JsonOption = False, config: ConfigOption = None) -> None:
    """Show where the key of each upstream comes from, and its fingerprint.

    The running daemon is asked: its environment may differ from this terminal's.
    """
    from byok.wiring.key_sources import list_keys

    def look_up() -> Json:
        settings, paths = load(config)
        ladder = KeyLadder(vault=open_vault(paths))
        return list_keys(settings, settings.upstreams, ladder)

    answer = ask_or_do(Service.KEYS, look_up, is_elsewhere=config is not None)
    rows = answer["keys"]
    if json:
        say_json(rows)
    elif rows:
        fields = ("upstream", "source", "fingerprint")
        table = [tuple(row[field] for field in fields) for row in rows]
        say_table(*fields, rows=table)
    elif Vault.label in " ".join(answer["unread"]):
        say("No keys were found, but not all could be read.")
    else:
        say("No keys were found. Store one: byok keys set NAME")
    _tell_problems(rows, answer["unread"])


def _tell_problems(rows: Sequence[Json], unread: Iterable[str]) -> None:
    """Report keys that cannot be used or are missing, and stores that were not read."""
    for row in rows:
        if row["error"]:
            tell(f"byok: the key of {row['upstream']} cannot be used: {row['error']}")
        elif row["source"] == "none" and "cure" in row:  # not of an older daemon
            tell(f"If {row['upstream']} needs a key: {row['cure']}")
    if not rows or any(row["source"] == "none" for row in rows):
        for reason in unread:  # a missing key may be in that store
            tell(f"byok: cannot read keys from the {reason}")


@commands.command("test")
def test_key(name: NameArgument, config: ConfigOption = None) -> None:
    """Test a key by requesting the upstream's model list with it.

    If the daemon is running, it tests the key that it uses. If there are several keys,
    it tests the one that would be used now.
    """
    with show_progress(f"asking {name} for its models"):
        answer = None
        with suppress(BadRequest):  # the daemon has no such upstream; a preset may be
            answer = (
                None if config else ask_daemon(Service.KEY_TEST, {"upstream": name})
            )
        if answer is None:
            answer = _test_here(name, config)
    if name == OFFICIAL:
        say(f"The official service at {answer['origin']} accepted the token.")
        return
    origin, models = answer["origin"], answer["models"]
    if not answer.get("with_key", True):  # a daemon of an older version
        say(
            f"{name} ({origin}) listed {models} model(s); "
            "no key is set, so none was tried."
        )
        return
    say(f"{name} ({origin}) listed {models} model(s) with this key.")
    tell("A few providers list models for any key; only a chat proves that it works.")


def _test_here(name: str, config: Path | None) -> Json:
    from byok.settings import upstream_named
    from byok.wiring.apis import base_url_of
    from byok.wiring.key_sources import key_named

    settings, _ = load(config)
    if name == OFFICIAL:
        key_named(name, settings)
    elif not base_url_of(upstream_named(name, settings)[1]):
        raise ConfigError(f"{name} needs no key.")

    async def work(services: "Services") -> Json:
        from byok.server.daemon_endpoints import try_key

        services.forget_keys()  # else a local server would be asked without its key
        first = next(iter(services.upstreams))
        return await try_key(services, OFFICIAL if name == OFFICIAL else first)

    upstream = "" if name == OFFICIAL else name
    return with_services(work, config=config, upstream=upstream)


@commands.command("remove")
def remove_key(
    name: NameArgument,
    store: Annotated[
        KeyStore | None, typer.Option(help="Remove it from this store only.")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Remove a stored key."""
    from byok.wiring.key_sources import key_named

    settings, paths = load(config)
    lookup = key_named(name, settings)
    is_removed = False
    errors: dict[KeyStore, ByokError] = {}
    for kind in [store] if store else (KeyStore.KEYRING, KeyStore.VAULT):
        try:
            is_keyring = kind is KeyStore.KEYRING
            key_store = KeyringStore() if is_keyring else open_vault(paths)
            if key_store.remove(lookup.entry):
                say(f"Removed the key of {name} from the {kind.value}.")
                is_removed = True
        except ByokError as error:
            errors[kind] = error
    if is_removed:
        _reload_daemon()
        return
    if errors:
        reasons = "; ".join(str(error).rstrip(".") for error in errors.values())
        hint = "If it is in the OS keyring, unlock that, and try again."
        if KeyStore.VAULT in errors:
            hint = errors[KeyStore.VAULT].hint
        raise ConfigError(f"No stored key of {name} was found: {reasons}.", hint=hint)
    else:
        places = store.value if store else "keyring or the vault"
        tell(f"There is no key for {name} ({lookup.origin}) in the {places}.")
        raise typer.Exit(1)


def _reload_daemon() -> None:
    """Make a running daemon read all keys again; report an error."""
    try:
        ask_daemon(Service.RELOAD)
    except ByokError as error:
        tell(error.sentence)


def _open_store(
    store: KeyStore | None, lookup: KeyLookup, paths: Paths, asker: Asker
) -> KeyringStore | Vault:
    """Return the store for a new key, opened before the key is typed."""
    vault = open_vault(paths)
    if store is None:
        return choose_store(lookup, KeyringStore(), vault, asker)
    if store is KeyStore.KEYRING:
        return KeyringStore()
    if store is KeyStore.KEY_FILE:
        vault.create_key_file()
    elif file := vault.own_key_file:
        tell(f"The encrypted file is opened by {file}, not by a passphrase.")
        tell(
            f"  For a passphrase, remove {paths.vault} and that file first, and then "
            "store all keys again."
        )
    vault.open()
    return vault
