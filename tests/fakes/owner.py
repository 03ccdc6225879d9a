"""What byok's own commands send to a daemon."""

from typing import Protocol

from byok.core.daemon.challenge import derive_owner_token
from byok.core.daemon.token import read_token
from byok.core.platform.paths import find_paths


class _Process(Protocol):
    @property
    def port(self) -> int: ...

    @property
    def instance(self) -> str: ...


def owner_token(daemon: _Process) -> str:
    """Return the owner's token for one daemon."""
    secret = read_token(find_paths().owner_secret)
    return derive_owner_token(secret, daemon.port, daemon.instance)


def token_for(path: str, daemon: _Process) -> str:
    """Return the token for a path: the owner's below /byok/, else the clients'."""
    if path.startswith("/byok/"):
        return owner_token(daemon)
    return read_token(find_paths().token)
