"""The OS keyring: only real ones, never for ever, and never trusted blindly."""

import threading
from collections.abc import Callable, Iterator

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import null
from keyring.errors import KeyringLocked, NoKeyringError

from byok.core.errors import ConfigError
from byok.settings.keys.keyring_store import KeyringStore
from tests.fakes.patience import PATIENCE
from tests.fakes.ring import FakeRing, as_backend, store_of

KEY = "sk-canary0123456789"
ENTRY = "openai@https://api.openai.com"
KeyringBackend.register(FakeRing)  # set_keyring takes nothing else


class PlaintextKeyring(FakeRing):
    """Looks like the one that keyrings.alt brings along."""

    __module__ = "keyrings.alt.file"


class SecretServiceRing(FakeRing):
    """Looks like the one of a Linux desktop."""

    __module__ = "keyring.backends.SecretService"


class Chainer(FakeRing):
    """Looks like the backend that asks several in turn."""

    __module__ = "keyring.backends.chainer"

    def __init__(self, *backends: object) -> None:
        super().__init__()
        self.backends = backends


@pytest.fixture(autouse=True)
def own_choice() -> Iterator[None]:
    """Leave the keyring library as it was."""
    before = keyring.get_keyring()
    yield
    keyring.set_keyring(before)


def test_keyring_keeps_reads_and_removes_a_key() -> None:
    ring = FakeRing()
    store = store_of(ring)
    assert store.get(ENTRY) is None
    store.set(ENTRY, KEY)
    assert ring.kept == {("byok", ENTRY): KEY}
    assert store.get(ENTRY) == KEY
    assert store.remove(ENTRY) is True
    assert store.remove(ENTRY) is False
    assert store.get(ENTRY) is None


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (null.Keyring, "no OS keyring"),
        (PlaintextKeyring, "keyrings.alt.file is refused"),
        (FakeRing, "tests.fakes.ring is refused"),
        (lambda: Chainer(PlaintextKeyring()), "no OS keyring"),
    ],
)
@pytest.mark.case("F38")
def test_keyring_backend_that_is_not_the_systems_own_is_refused_unused(
    make: Callable[[], object], told: str
) -> None:
    backend = make()
    keyring.set_keyring(as_backend(backend))
    for call in (
        lambda: KeyringStore().get(ENTRY),
        lambda: KeyringStore().set(ENTRY, KEY),
        lambda: KeyringStore().remove(ENTRY),
    ):
        with pytest.raises(ConfigError, match=told) as caught:
            call()
        assert "--store vault" in caught.value.hint
        assert KEY not in caught.value.sentence
    used = [*getattr(backend, "backends", ()), backend]
    assert not any(getattr(ring, "calls", 0) for ring in used)


def test_keyring_chain_uses_only_the_systems_own_backend() -> None:
    plain, real = PlaintextKeyring(), SecretServiceRing()
    keyring.set_keyring(as_backend(Chainer(plain, real)))
    KeyringStore().set(ENTRY, KEY)
    assert (plain.calls, real.kept) == (0, {("byok", ENTRY): KEY})


@pytest.mark.case("F38")
def test_keyring_backend_that_forgets_is_caught_by_reading_back() -> None:
    with pytest.raises(ConfigError, match="did not store the key") as caught:
        store_of(FakeRing(forgets=True)).set(ENTRY, KEY)
    assert KEY not in caught.value.sentence


@pytest.mark.case("F38")
@pytest.mark.slow
def test_keyring_backend_that_hangs_is_given_up_and_retried_later() -> None:
    free = threading.Event()
    ring = FakeRing(wait_for=free)
    ring.kept["byok", ENTRY] = KEY
    now = [0.0]
    store = store_of(ring, seconds=0.5, clock=lambda: now[0])
    for _ in range(3):
        with pytest.raises(ConfigError, match=r"did not answer within 0\.5 seconds"):
            store.get(ENTRY)
    assert ring.calls == 1, "only the first caller waits while the backend hangs"
    free.set()
    stuck = [t for t in threading.enumerate() if t.name == "byok-keyring"]
    for thread in stuck:
        thread.join(PATIENCE)
    with pytest.raises(ConfigError):
        store.get(ENTRY)
    now[0] += 60
    assert store_of(ring).get(ENTRY) == store.get(ENTRY) == KEY


@pytest.mark.case("F38")
def test_a_locked_keyring_is_asked_once_and_not_for_every_upstream() -> None:
    ring = FakeRing(error=KeyringLocked(KEY))
    store = store_of(ring)
    for _ in range(3):
        with pytest.raises(ConfigError, match="locked"):
            store.get(ENTRY)
    assert ring.calls == 1


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyringLocked(KEY), "locked"),
        (EOFError(KEY), "locked"),
        (NoKeyringError(KEY), "no OS keyring"),
        (RuntimeError(KEY), r"failed \(RuntimeError\)"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
@pytest.mark.case("F38")
def test_keyring_failure_becomes_a_sentence_with_a_hint(
    error: Exception, told: str
) -> None:
    store = store_of(FakeRing(error=error))
    with pytest.raises(ConfigError, match=told) as caught:
        store.set(ENTRY, KEY)
    assert "BYOK_KEY_<NAME> or api_key_cmd" in caught.value.hint
    assert KEY not in caught.value.sentence
    assert caught.value.__cause__ is error
