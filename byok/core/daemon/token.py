"""Create, rotate and check tokens: files that only their owner may read."""

import hmac
import logging
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from byok.core.errors import ConfigError
from byok.core.platform.paths import check_private, create_private, write_private

_log = logging.getLogger(__name__)
_TOKEN_BYTES = 32
_MIN_CHARS = 16
_HINTS = {
    "metrics-token": "Run: byok token rotate --metrics",
    "owner-secret": "Delete this file, and start byok again: that makes a new one.",
}


def read_token(path: Path) -> str:
    """Return the token; create one if there is none.

    Raises:
        ConfigError: the file is not private, not plain, or contains no token.
    """
    if os.path.lexists(path):
        return _read_existing(path)
    token = _new_token()
    try:
        create_private(path, token + "\n")
    except FileExistsError:
        return _read_existing(path)
    return token


def rotate_token(path: Path) -> str:
    """Replace the token; a running daemon accepts the new one at once."""
    token = _new_token()
    write_private(path, token + "\n")
    return token


def renew_token(path: Path) -> None:
    """Replace the token, or keep the present one if the file cannot be written.

    Raises:
        ConfigError: the present file is not private or contains no token.
        OSError: there is no file, and none can be written.
    """
    try:
        rotate_token(path)
    except OSError:
        if not path.exists():
            raise
        _read_existing(path)


def _new_token() -> str:
    """Return a token that does not begin like a command-line option."""
    while not (token := secrets.token_urlsafe(_TOKEN_BYTES))[0].isalnum():
        pass
    return token


def _read_existing(path: Path) -> str:
    check_private(path)
    with path.open("rb") as file:
        raw = file.read(1024)
    token = raw.decode().strip() if raw.isascii() else ""
    if not _MIN_CHARS <= len(token) <= 512 or not token.isprintable():
        hint = _HINTS.get(path.name, "Run: byok token rotate")
        raise ConfigError(f"{path} contains no token.", hint=hint)
    return token


class TokenCheck:
    """Checks Authorization headers; reads the token file again when it changes.

    Each valid token is passed to `on_token`, so that logs can be redacted. `derive`
    computes the token that is sent from the content of the file. Without `required`, a
    private file that contains no token is logged as an error, and no token is valid
    until it contains one.
    """

    def __init__(
        self,
        path: Path,
        on_token: Callable[[str], None] = lambda token: None,
        derive: Callable[[str], str] = lambda token: token,
        *,
        required: bool = True,
    ) -> None:
        self._path = path
        self._on_token = on_token
        self._derive = derive
        try:
            self._token = read_token(path)
        except ConfigError as error:
            if required:
                raise
            check_private(path)
            _log.error("%s", error.sentence)
            self._token = ""
        self._stamp = _stamp(path)
        on_token(self._token)

    @property
    def token(self) -> str:
        """The content of the file, or its last content if it is gone."""
        try:
            stamp = _stamp(self._path)
        except OSError:
            return self._token
        if stamp != self._stamp:
            try:
                self._token, self._stamp = _read_existing(self._path), stamp
            except (ConfigError, OSError) as error:
                if self._token:
                    _log.error("the token cannot be read: %s", error)
                self._token = ""  # no token is valid until the file is valid
            self._on_token(self._token)
        return self._token

    def __call__(self, header: str) -> bool:
        """Tell whether an Authorization header holds the token.

        If the user has pasted a token with `Bearer `, the word arrives twice. Bytes are
        compared, because a header may hold characters that are not ASCII.
        """
        credentials = header
        while credentials[:7].lower() == "bearer ":
            credentials = credentials[7:].lstrip()
        if credentials == header or not credentials:
            return False
        sent = credentials.encode("utf-8", "surrogateescape")
        if not (token := self.token):
            return False
        return hmac.compare_digest(sent, self._derive(token).encode())


def _stamp(path: Path) -> tuple[int, int]:
    facts = os.stat(path)  # noqa: PTH116 - faster, and called for every request
    return facts.st_mtime_ns, facts.st_ino
