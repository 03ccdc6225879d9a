"""The vault: an encrypted file for keys, for machines without a keyring, on request.

AES-256-GCM under a key that scrypt (n=2^17, r=8, p=1) derives from a passphrase. The
passphrase comes from `BYOK_VAULT_PASSPHRASE`, from the file that `BYOK_VAULT_KEY_FILE`
names, from byok's own key file, or from a person at a terminal.

byok's own key file holds a random passphrase and has mode 600. Nobody has to type
anything, so that services can open the vault. It protects the keys if only the vault
file leaks, as in a copy or a log; not from somebody who can read both files.
"""

import base64
import contextlib
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from byok.core.errors import ConfigError
from byok.core.platform.paths import (
    check_private,
    create_private,
    make_private,
    write_private,
)
from byok.core.platform.process import explain_import

_PASSPHRASE, _KEY_FILE = "BYOK_VAULT_PASSPHRASE", "BYOK_VAULT_KEY_FILE"
_N, _R, _P = 2**17, 8, 1
_SALT, _NONCE, _KEY = 16, 12, 32  # bytes


class Vault:
    """Keys in one encrypted file."""

    label = "vault"

    def __init__(
        self,
        path: Path,
        environ: Mapping[str, str] = os.environ,
        ask: Callable[[], str] | None = None,
        key_file: Path | None = None,
    ) -> None:
        self._path = path
        self._environ = environ
        self._ask = ask
        self._key_file = key_file
        self._typed = ""  # the passphrase that a person typed
        self._derived = (b"", "", b"")  # cached salt, passphrase, key: scrypt is slow

    def get(self, entry: str) -> str | None:
        """Return the stored key, or None; a missing file contains no keys.

        Raises:
            ConfigError: the file is damaged, or the passphrase is missing or wrong.
        """
        return self._read().get(entry) if self._path.exists() else None

    def set(self, entry: str, key: str) -> None:
        """Store a key.

        Raises:
            ConfigError: as for get.
        """
        with self._changing() as keys:
            keys[entry] = key

    def remove(self, entry: str) -> bool:
        """Remove a key; False if there was none.

        Raises:
            ConfigError: as for get.
        """
        if self.get(entry) is None:
            return False
        with self._changing() as keys:
            return keys.pop(entry, None) is not None

    def open(self) -> bool:
        """Open the vault, asking for its passphrase if need be; False if there is none.

        Raises:
            ConfigError: as for get.
        """
        if not self._path.exists():
            return False
        self._read()
        return True

    @property
    def own_key_file(self) -> Path | None:
        """The file of byok's own that opens the vault, if one does."""
        is_named = any(map(self._environ.get, (_PASSPHRASE, _KEY_FILE)))
        own = self._key_file
        return own if own and not is_named and os.path.lexists(own) else None

    def create_key_file(self) -> None:
        """Create byok's own key file, which opens the vault without a passphrase.

        An existing vault has its passphrase already and gets no key file.

        Raises:
            ConfigError: the vault exists and does not open without a person.
        """
        if self._key_file is None or self._key_file.exists():
            return
        if self._path.exists():
            raise ConfigError(
                "The encrypted file exists already and has a passphrase.",
                hint="Use its passphrase: --store vault.",
            )
        with contextlib.suppress(FileExistsError):  # made by another byok just now
            create_private(self._key_file, f"{secrets.token_urlsafe(32)}\n")

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, str]]:
        """Yield the keys, then write them, under a lock against other processes."""
        from filelock import FileLock

        if not self.open():
            self._passphrase()  # ask before the lock is taken: typing takes long
        make_private(self._path.parent)
        with FileLock(self._path.with_name(f"{self._path.name}.lock"), mode=0o600):
            keys = self._read() if self._path.exists() else {}
            yield keys
            self._write(keys)

    def _read(self) -> dict[str, str]:
        check_private(self._path)
        invalid_tag, aead = _cipher()
        try:
            sealed = orjson.loads(self._path.read_bytes())
            salt, nonce, data = (
                base64.b64decode(sealed[part]) for part in ("salt", "nonce", "data")
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{self._path} is damaged.") from error
        key = self._derive(salt)
        try:
            plain = aead(key).decrypt(nonce, data, b"byok")
        except invalid_tag:
            raise ConfigError("the vault's passphrase is wrong") from None
        except ValueError as error:
            raise ConfigError(f"{self._path} is damaged.") from error
        keys: dict[str, str] = orjson.loads(plain)
        return keys

    def _write(self, keys: Mapping[str, str]) -> None:
        _, aead = _cipher()
        salt, nonce = os.urandom(_SALT), os.urandom(_NONCE)
        data = aead(self._derive(salt)).encrypt(nonce, orjson.dumps(keys), b"byok")
        sealed = {"salt": salt, "nonce": nonce, "data": data}
        text = orjson.dumps(
            {k: base64.b64encode(v).decode() for k, v in sealed.items()}
        )
        write_private(self._path, text.decode())

    def _derive(self, salt: bytes) -> bytes:
        from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

        phrase = self._passphrase()
        if self._derived[:2] != (salt, phrase):
            scrypt = Scrypt(salt=salt, length=_KEY, n=_N, r=_R, p=_P)
            self._derived = salt, phrase, scrypt.derive(phrase.encode())
        return self._derived[2]

    def _passphrase(self) -> str:
        if phrase := self._environ.get(_PASSPHRASE, ""):
            return phrase
        if name := self._environ.get(_KEY_FILE, ""):
            return _read_key_file(Path(name), _KEY_FILE)
        if file := self.own_key_file:
            return _read_key_file(file, str(file))
        if self._ask is not None and not self._typed:
            self._typed = self._ask()
        if self._typed:
            return self._typed
        raise ConfigError(
            "the vault is locked",
            hint="Set BYOK_VAULT_PASSPHRASE or BYOK_VAULT_KEY_FILE. In bash: "
            "read -rs BYOK_VAULT_PASSPHRASE && export BYOK_VAULT_PASSPHRASE",
        )


def _read_key_file(file: Path, title: str) -> str:
    try:
        check_private(file, "It must belong to you only, and be no link.")
        phrase = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{title} cannot be read") from error
    if phrase:
        return phrase
    raise ConfigError(f"{title} is empty")


def _cipher() -> tuple[type[Exception], Any]:
    try:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise explain_import(
            error,
            "The vault needs the package cryptography.",
            hint="Run: byok upgrade --extra vault",
        ) from error
    return InvalidTag, AESGCM
