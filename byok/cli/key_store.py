"""Choose where a new key is stored, and ask for the passphrase of the vault."""

import sys
from enum import StrEnum

import typer

from byok.cli.asker import Asker
from byok.cli.output import tell
from byok.core.errors import ConfigError, KeyMissing
from byok.core.platform.paths import Paths
from byok.settings.keys import KeyWanted
from byok.settings.keys.keyring_store import KeyringStore
from byok.settings.keys.vault import Vault


class KeyStore(StrEnum):
    """Where a key is stored; `key-file` is the vault, opened by byok's key file."""

    KEYRING = "keyring"
    VAULT = "vault"
    KEY_FILE = "key-file"


def open_vault(paths: Paths) -> Vault:
    """Return the vault, which asks for its passphrase where a terminal is."""

    def ask() -> str:
        new = not paths.vault.exists()
        return str(
            typer.prompt(
                "Passphrase of the encrypted file",
                hide_input=True,
                confirmation_prompt=new,
                err=True,
            )
        )

    ask_person = ask if sys.stdin.isatty() else None
    return Vault(paths.vault, ask=ask_person, key_file=paths.vault_key)


def choose_store(
    wanted: KeyWanted, keyring: KeyringStore, vault: Vault, asker: Asker
) -> KeyringStore | Vault:
    """Return a store that works here, before the key itself is asked for.

    That is the OS keyring, or else the encrypted file if there is one already. Without
    both, a person chooses how a new encrypted file is opened.

    Raises:
        KeyMissing: nothing works, and nobody can be asked, or the person wants neither.
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
        f"Run: byok keys set {wanted.title} --store key-file (or --store vault, with a "
        f"passphrase), or set {wanted.own_env}, or the systemd credential "
        f"{wanted.credential}."
    )
    refusal = KeyMissing(
        f"The key of {wanted.title} cannot be stored: {reason}.", hint=cure
    )
    if not asker.is_person:
        raise refusal
    tell(f"The key cannot go into the OS keyring: {reason}. Instead, byok can use")
    tell("  1  an encrypted file that a key file of mode 600 opens. Services and")
    tell("     restarts need no passphrase. Whoever gets only the encrypted file reads")
    tell("     nothing; whoever can read all files of your account reads the key.")
    tell("  2  an encrypted file that a passphrase opens. A service or daemon needs it")
    tell("     at each start, in BYOK_VAULT_PASSPHRASE.")
    tell(f"  3  nothing: you set {wanted.own_env}, or the systemd credential")
    tell(f"     {wanted.credential}, yourself.")
    while (answer := asker.text("Which one?", "1")) not in ("1", "2", "3"):
        tell("Type 1, 2 or 3.")
    if answer == "3":
        raise refusal
    if answer == "1":
        vault.create_key_file()
    return vault
