"""byok keys."""

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from byok.cli.context import ConfigOption, JsonOption, load, with_services
from byok.cli.output import say, say_json, say_table, tell

if TYPE_CHECKING:
    from byok.config import Settings
    from byok.keys import KeyWanted
    from byok.keys.keyring_store import KeyringStore
    from byok.keys.vault import Vault
    from byok.paths import Paths
    from byok.services import Services

NameArgument = Annotated[
    str,
    typer.Argument(help="A preset, an upstream of the settings, or official."),
]
_JSON = {"Content-Type": "application/json"}
_ASK_SECONDS = 12.0


class Store(StrEnum):
    """Where a key is kept."""

    KEYRING = "keyring"
    VAULT = "vault"


StoreOption = Annotated[Store, typer.Option(help="The OS keyring, or a sealed file.")]


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(
        help="Keep the keys of upstreams in the OS keyring.", no_args_is_help=True
    )
    group.command(name="set")(set_key)
    group.command(name="list")(list_keys)
    group.command(name="test")(test_key)
    group.command(name="remove")(remove_key)
    app.add_typer(group, name="keys")


def set_key(
    name: NameArgument,
    store: StoreOption = Store.KEYRING,
    config: ConfigOption = None,
) -> None:
    """Store a key, asked for without echo or read from standard input."""
    from byok.keys import clean_key, fingerprint

    settings, paths = load(config)
    wanted = _wanted(name, settings)
    if sys.stdin.isatty():
        raw: str = typer.prompt(
            f"Key for {wanted.name} ({wanted.origin})", hide_input=True
        )
    else:
        raw = sys.stdin.readline()
    key = clean_key(raw)
    _store(store, paths).set(wanted.entry, key)
    say(
        f"Stored the key of {wanted.name} for {wanted.origin} "
        f"(fingerprint {fingerprint(key)}) in the {store.value}."
    )


def list_keys(json: JsonOption = False, config: ConfigOption = None) -> None:
    """Show for each upstream where its key comes from, and a fingerprint of it."""
    from byok.choosing import make_ladder
    from byok.dialects.presets import PRESETS
    from byok.errors import ConfigError, KeyMissing
    from byok.keys import fingerprint
    from byok.knowledge import OFFICIAL

    settings, paths = load(config)
    ladder = make_ladder(paths)
    hosted = [n for n, p in PRESETS.items() if p.key_env and p.base_url]
    rows: list[tuple[str, str, str]] = []
    configured = list(settings.upstreams)
    if settings.routing.official.base_url:
        configured.append(OFFICIAL)
    for name in dict.fromkeys((*configured, *hosted)):
        try:
            found = ladder.find(_wanted(name, settings))
            rows.append((name, found.source, fingerprint(found.value)))
        except KeyMissing:
            if name in configured:
                rows.append((name, "none", ""))
        except ConfigError as error:
            rows.append((name, str(error), ""))
    if json:
        fields = ("upstream", "source", "fingerprint")
        say_json([dict(zip(fields, row, strict=True)) for row in rows])
    elif rows:
        say_table("upstream", "source", "fingerprint", rows=list(rows))
    else:
        say("No keys were found. Store one: byok keys set NAME")


def test_key(name: NameArgument, config: ConfigOption = None) -> None:
    """Ask the upstream for its models with the key, and say what it answers."""
    from byok.knowledge import OFFICIAL

    settings, _ = load(config)
    wanted = _wanted(name, settings)
    if name == OFFICIAL:
        with_services(_test_official, config=config)
        say(f"The official service took the token for {wanted.origin}.")
        return

    async def work(services: "Services") -> int:
        services.forget_keys()  # so that the keyring counts for a local server too
        first = next(iter(services.upstreams.values()))
        return len(await first.models())

    count = with_services(work, config=config, upstream=name)
    say(f"{name} listed {count} model(s) for the key of {wanted.origin}.")
    tell("A few providers list their models for any key; a first chat is the proof.")


async def _test_official(services: "Services") -> None:
    asked = services.official.asked("/get-models", b"{}", _JSON, _ASK_SECONDS)
    async with asked:
        pass  # it began to answer, so it took the token


def remove_key(
    name: NameArgument,
    store: StoreOption = Store.KEYRING,
    config: ConfigOption = None,
) -> None:
    """Forget a stored key."""
    settings, paths = load(config)
    wanted = _wanted(name, settings)
    if _store(store, paths).remove(wanted.entry):
        say(f"Removed the key of {name} from the {store.value}.")
    else:
        tell(f"There is no key of {name} for {wanted.origin} in the {store.value}.")
        raise typer.Exit(1)


def _wanted(name: str, settings: "Settings") -> "KeyWanted":
    from byok.choosing import key_wanted, official_wanted
    from byok.config import upstream_named
    from byok.errors import ConfigError
    from byok.knowledge import OFFICIAL

    if name == OFFICIAL:
        wanted = official_wanted(settings)
        if not wanted.base_url:
            raise ConfigError(
                "The official service has no address to which a token could belong.",
                hint="Set base_url under [routing.official] first.",
            )
        return wanted
    wanted = key_wanted(*upstream_named(name, settings))
    if not wanted.base_url:
        raise ConfigError(f"{name} needs no key.")
    return wanted


def _store(store: Store, paths: "Paths") -> "KeyringStore | Vault":
    from byok.keys.keyring_store import KeyringStore
    from byok.keys.vault import Vault

    if store is Store.KEYRING:
        return KeyringStore()
    return Vault(
        paths.vault, ask=lambda: str(typer.prompt("Passphrase", hide_input=True))
    )
