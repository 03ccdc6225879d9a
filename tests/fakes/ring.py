"""A keyring backend that keeps keys in memory and misbehaves on request."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from byok.settings.keys.keyring_store import KeyringStore
from tests.fakes.patience import PATIENCE

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend


class FakeRing:
    """Has the three calls of a backend; no subclass, as those register themselves."""

    name = "a ring"

    def __init__(
        self,
        *,
        error: Exception | None = None,
        forgets: bool = False,
        wait_for: threading.Event | None = None,
    ) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.calls = 0
        self.error = error
        self._forgets = forgets
        self._wait_for = wait_for

    def get_password(self, service: str, entry: str) -> str | None:
        self._misbehave()
        return self.kept.get((service, entry))

    def set_password(self, service: str, entry: str, key: str) -> None:
        self._misbehave()
        if not self._forgets:
            self.kept[service, entry] = key

    def delete_password(self, service: str, entry: str) -> None:
        self._misbehave()
        del self.kept[service, entry]

    def _misbehave(self) -> None:
        self.calls += 1
        if self._wait_for is not None:
            assert self._wait_for.wait(PATIENCE)
        if self.error is not None:
            raise self.error


def as_backend(ring: object) -> "KeyringBackend":
    """Present a fake to the type checker as what it imitates."""
    return cast("KeyringBackend", ring)


def store_of(
    ring: object,
    seconds: float = PATIENCE,
    clock: Callable[[], float] = time.monotonic,
) -> KeyringStore:
    """Give a store whose backend is the ring."""
    return KeyringStore(seconds=seconds, choose=lambda: as_backend(ring), clock=clock)
