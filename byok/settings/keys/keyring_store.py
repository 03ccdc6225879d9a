"""The operating system's keyring, restricted to real backends and with a timeout.

The keyring library may choose a backend that writes keys in plain text, or one that
accepts a key and forgets it; it may also wait forever for a missing desktop. So the
backend must be one of the operating systems' own, every call runs in a thread that is
abandoned after a timeout, and a stored key is read back.
"""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from byok.core.errors import ConfigError

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

SERVICE = "byok"
_COOLDOWN_SECONDS = 30.0  # after a failure
_ALLOWED = (
    "keyring.backends.macOS",
    "keyring.backends.Windows",
    "keyring.backends.SecretService",
    "keyring.backends.libsecret",
    "keyring.backends.kwallet",
)
_CHAINER = "keyring.backends.chainer"
_CURE = "Set BYOK_KEY_<NAME> or api_key_cmd, or: byok keys set NAME --store vault"
T = TypeVar("T")


class KeyringStore:
    """Keys in the OS keyring, under the service name `byok`."""

    label = "OS keyring"

    def __init__(
        self,
        *,
        seconds: float = 5,
        choose: "Callable[[], KeyringBackend] | None" = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._failure: tuple[float, ConfigError] | None = None
        self._choose = choose or _choose_backend
        self._stuck: threading.Thread | None = None

    def backend(self) -> str:
        """Return the name of the backend that would be used; nothing is read from it.

        Raises:
            ConfigError: there is no usable keyring, or it does not answer.
        """
        return self._call(lambda ring: str(ring.name))

    def get(self, entry: str) -> str | None:
        """Return the stored key, or None.

        A keyring that failed is not asked again for 30 seconds: each call may open
        another dialog on the user's desktop.

        Raises:
            ConfigError: there is no usable keyring, it is locked, or does not answer.
        """
        if self._failure and self._clock() < self._failure[0] + _COOLDOWN_SECONDS:
            raise self._failure[1]
        try:
            return self._call(lambda ring: ring.get_password(SERVICE, entry))
        except ConfigError as error:
            self._failure = (self._clock(), error)
            raise

    def set(self, entry: str, key: str) -> None:
        """Store a key and read it back.

        Raises:
            ConfigError: as for get, or the keyring did not store the key.
        """
        self._call(lambda ring: ring.set_password(SERVICE, entry, key))
        self._failure = None  # it answers again
        if self.get(entry) != key:
            raise ConfigError("The OS keyring did not store the key.", hint=_CURE)

    def remove(self, entry: str) -> bool:
        """Remove a key; False if there was none.

        Raises:
            ConfigError: as for get.
        """
        if self.get(entry) is None:
            return False
        self._call(lambda ring: ring.delete_password(SERVICE, entry))
        return True

    def _call(self, action: "Callable[[KeyringBackend], T]") -> T:
        """Run one call in its own thread, which does not outlive the process."""
        outcome: list[T] = []
        failure: list[Exception] = []

        def work() -> None:
            try:
                outcome.append(action(self._choose()))
            except Exception as error:
                failure.append(error)

        thread = threading.Thread(target=work, name="byok-keyring", daemon=True)
        if self._stuck is None or not self._stuck.is_alive():
            thread.start()
            thread.join(self._seconds)
            self._stuck = thread  # while the thread hangs, other calls fail at once
        if failure:
            raise _translate(failure[0]) from failure[0]
        if not outcome:
            raise ConfigError(
                f"the OS keyring did not answer within {self._seconds:g} seconds",
                hint=_CURE,
            )
        return outcome[0]


def _choose_backend() -> "KeyringBackend":
    """Return the library's backend if it is one of the operating systems' own.

    Raises:
        ConfigError: it is another one, which may store plain text, or there is none.
    """
    import keyring

    default = keyring.get_keyring()
    candidates = [default]
    if type(default).__module__.startswith(_CHAINER):
        candidates = list(getattr(default, "backends", ()))
    for backend in candidates:
        if type(backend).__module__.startswith(_ALLOWED):
            return backend
    module = type(default).__module__
    if module.startswith(("keyring.backends.fail", "keyring.backends.null", _CHAINER)):
        raise ConfigError("no OS keyring is available here", hint=_CURE)
    raise ConfigError(
        f"the keyring backend {module} is refused: it is not an operating system's own",
        hint=_CURE,
    )


def _translate(error: Exception) -> ConfigError:
    if isinstance(error, ConfigError):
        return error
    kind = type(error).__name__
    if kind in ("KeyringLocked", "InitError", "EOFError", "PasswordSetError"):
        return ConfigError(
            "the OS keyring is locked and cannot ask to be unlocked", hint=_CURE
        )
    if kind == "NoKeyringError":
        return ConfigError("no OS keyring is available here", hint=_CURE)
    return ConfigError(f"the OS keyring failed ({kind})", hint=_CURE)
