"""byok init: ask the chosen upstream for its models, with a new key if need be."""

import asyncio

from byok.cli.asker import Asker
from byok.cli.key_store import choose_store
from byok.cli.output import say, tell
from byok.config import Settings
from byok.dialects.model_facts import ModelFacts
from byok.errors import ConfigError, KeyMissing, RefusalKind, UpstreamRefused
from byok.keys import KeyLadder, clean_key, fingerprint
from byok.keys.keyring_store import KeyringStore
from byok.keys.vault import Vault
from byok.setup.candidate import Candidate
from byok.setup.survey import list_models, one_key
from byok.urls import is_loopback

_SECONDS = 30.0
_TRIES = 3


def find_models(
    candidate: Candidate,
    settings: Settings,
    ladder: KeyLadder,
    keyring: KeyringStore,
    asker: Asker,
    vault: Vault,
) -> tuple[ModelFacts, ...]:
    """Return the models of the chosen upstream, which proves that its key is taken.

    A person without a key is asked for one; it is stored once it was taken.

    Raises:
        ConfigError: there is no key, or no store to write one into.
        UpstreamError: it refuses the key, or gives no list.
    """
    if candidate.models:
        return candidate.models
    try:
        return _list(candidate, settings, ladder)
    except KeyMissing:
        if not _may_ask(candidate, asker):
            raise
    except UpstreamRefused as error:
        if error.kind is not RefusalKind.AUTH or not _may_ask(candidate, asker):
            raise _with_source(error, candidate) from None
        tell(error.sentence)
    return _with_new_key(candidate, settings, keyring, asker, vault)


def _may_ask(candidate: Candidate, asker: Asker) -> bool:
    """Tell whether a new key would be used: one of the environment outranks it."""
    section, source = candidate.section, candidate.key_source
    named = section.api_key_env or section.api_key_cmd or section.key_names
    stored = source in ("", KeyringStore.label, Vault.label)
    return asker.is_person and stored and not named


def _with_source(error: UpstreamRefused, candidate: Candidate) -> UpstreamRefused:
    if error.kind is RefusalKind.AUTH and candidate.key_source:
        tell(f"The key comes from {candidate.key_source}; correct it there.")
    return error


def _with_new_key(
    candidate: Candidate,
    settings: Settings,
    keyring: KeyringStore,
    asker: Asker,
    vault: Vault,
) -> tuple[ModelFacts, ...]:
    from byok.wiring.key_sources import key_wanted

    name = candidate.name
    wanted = key_wanted(name, candidate.section)
    store = choose_store(
        wanted, keyring, vault, asker
    )  # before anything secret is typed
    for _ in range(_TRIES):
        given = asker.secret(f"Key for {name} ({wanted.origin}), not shown")
        try:
            key = clean_key(given)
            models = _list(candidate, settings, one_key(name, key))
        except UpstreamRefused as error:
            if error.kind is not RefusalKind.AUTH:
                raise
            tell(error.sentence)
            continue
        except ConfigError as error:
            tell(f"{error} {error.hint}".rstrip())
            continue
        store.set(wanted.entry, key)
        say(f"Stored the key (fingerprint {fingerprint(key)}) in the {store.label}.")
        return models
    raise ConfigError(f"{name} took none of these keys. Nothing was stored or changed.")


def _list(
    candidate: Candidate, settings: Settings, ladder: KeyLadder
) -> tuple[ModelFacts, ...]:
    seconds = _SECONDS if not is_loopback(candidate.address) else _SECONDS / 3
    try:
        return asyncio.run(
            list_models(candidate.name, candidate.section, settings, ladder, seconds)
        )
    except TimeoutError:
        raise ConfigError(
            f"{candidate.name} ({candidate.address}) did not list its models within "
            f"{seconds:.0f} seconds. Nothing was changed.",
            hint="Try again: byok init",
        ) from None
