"""A keyring in memory that misbehaves on request; what upstreams share, with one."""

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from byok.core.redact import Redactor
from byok.settings.keys import KeyLadder
from byok.settings.keys.keyring_store import KeyringStore
from byok.upstream.model_facts import Profiles
from byok.upstream.provider_data_store import ProviderDataStore
from byok.upstream.transport import Transports
from byok.wiring.upstreams import Shared
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


def make_shared(
    folder: Path = Path("no"),
    transports: Transports | None = None,
    environ: Mapping[str, str] = MappingProxyType({}),
) -> Shared:
    """Return what upstreams share; keys are in `environ`, the keyring is empty."""
    return Shared(
        transports or Transports(),
        ProviderDataStore(folder / "kept.db"),
        Profiles(folder / "profiles.json"),
        KeyLadder(environ=environ, keyring=store_of(FakeRing())),
        Redactor(),
    )
