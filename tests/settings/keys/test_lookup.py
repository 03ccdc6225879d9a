"""A key is looked up once and kept out of logs; one of several rests if refused."""

import asyncio
import threading
from pathlib import Path

import pytest

from byok.core.errors import KeyMissing
from byok.core.redact import Redactor
from byok.settings.keys import vault as vault_module
from byok.settings.keys.ladder import (
    FoundKey,
    KeyLadder,
    KeyPool,
    KeyWanted,
    UpstreamKey,
)
from byok.settings.keys.vault import Vault
from tests.fakes.clock import Clock
from tests.fakes.patience import PATIENCE
from tests.fakes.ring import FakeRing, store_of

KEY = "key-0123456789abcdef"
URL = "https://api.example.com/v1"


def lookup(
    environ: dict[str, str], wanted: KeyWanted, redactor: Redactor | None = None
) -> UpstreamKey:
    ladder = KeyLadder(environ=environ, keyring=store_of(FakeRing()))
    return UpstreamKey(ladder, wanted, redactor or Redactor())


async def test_key_lookup_finds_a_key_once_and_keeps_it_out_of_logs() -> None:
    environ = {"BYOK_KEY_BOX": KEY}
    redactor = Redactor()
    key = lookup(environ, KeyWanted("box", URL), redactor)
    assert await key.get() == KEY
    environ["BYOK_KEY_BOX"] = "another-0123456789"
    assert await key.get() == KEY
    assert KEY not in redactor(f"refused {KEY}")


@pytest.mark.parametrize("preset_env", ["OPENAI_API_KEY", ""])
async def test_a_key_stored_in_the_encrypted_file_later_is_found_without_a_restart(
    preset_env: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault_module, "_N", 2**8)  # cheap
    place, key_file = tmp_path / "vault.json", tmp_path / "vault.key"

    def opened() -> Vault:
        return Vault(place, {}, key_file=key_file)

    ladder = KeyLadder(environ={}, keyring=store_of(FakeRing()), vault=opened())
    key = UpstreamKey(ladder, KeyWanted("box", URL, preset_env), Redactor())
    if preset_env:
        with pytest.raises(KeyMissing):
            await key.get()
    else:
        assert await key.get() == ""  # it may need none: the refusal tells
        key.forget()
    for value in (KEY, "another-0123456789"):
        other_process = opened()
        other_process.create_key_file()
        other_process.set(key.wanted.entry, value)
        assert await key.get() == value
        key.forget()


async def test_key_lookup_for_a_local_server_opens_the_keyring_after_a_refusal() -> (
    None
):
    ring = FakeRing()
    store = store_of(ring)
    wanted = KeyWanted("box", "http://127.0.0.1:9/v1")
    store.set(wanted.entry, KEY)
    asked = ring.calls
    ladder = KeyLadder(environ={}, keyring=store)
    key = UpstreamKey(ladder, wanted, Redactor(), local=True)
    assert await key.get() == ""
    assert ring.calls == asked
    key.forget()
    assert await key.get() == KEY
    assert ring.calls > asked


class HeldLadder(KeyLadder):
    """Finds what a variable holds when the search begins, and gives it later."""

    def __init__(self, environ: dict[str, str]) -> None:
        super().__init__(environ=environ, keyring=store_of(FakeRing()))
        self.has_read, self.may_give = threading.Event(), threading.Event()

    def find(self, wanted: KeyWanted, *, stores: bool = True) -> FoundKey:
        found = super().find(wanted, stores=stores)
        self.has_read.set()
        assert self.may_give.wait(PATIENCE)
        return found


async def test_a_key_that_changes_while_it_is_looked_up_counts_at_once() -> None:
    """A keyring may ask for its password meanwhile, which takes its time."""
    environ = {"BYOK_KEY_BOX": KEY}
    ladder = HeldLadder(environ)
    key = UpstreamKey(ladder, KeyWanted("box", URL), Redactor())
    looking = asyncio.ensure_future(key.get())
    await asyncio.to_thread(ladder.has_read.wait, PATIENCE)
    environ["BYOK_KEY_BOX"] = "another-0123456789"
    key.forget(everywhere=False)  # as after `byok keys set`
    ladder.may_give.set()
    assert await looking == "another-0123456789"


WORK, HOME = "key-work-0123456789", "key-home-0123456789"
BOTH = {"BYOK_KEY_BOX__WORK": WORK, "BYOK_KEY_BOX__HOME": HOME}


class Box:
    """A pool with the keys `work` and `home`, a clock, and what is not logged."""

    def __init__(self, environ: dict[str, str] | None = None) -> None:
        self.environ = {**BOTH} if environ is None else environ
        self.clock = Clock()
        self.redactor = Redactor()
        ladder = KeyLadder(environ=self.environ, keyring=store_of(FakeRing()))
        keys = [
            UpstreamKey(ladder, KeyWanted("box", URL, label=label), self.redactor)
            for label in ("work", "home")
        ]
        self.pool = KeyPool(keys, clock=self.clock)


async def test_key_pool_replaces_a_key_until_its_rest_is_over() -> None:
    box = Box()
    key = box.pool.begin()
    assert await key.get() == WORK
    assert key.replace(60)
    assert await key.get() == HOME
    assert not key.replace(30)
    assert await key.get() == HOME
    assert await box.pool.get() == HOME  # it rests shorter
    box.clock.now += 60
    assert await box.pool.get() == WORK


async def test_key_pool_keeps_the_key_of_a_conversation() -> None:
    box = Box()
    key = box.pool.begin("c-1")
    key.replace(60)
    assert await key.get() == HOME
    box.clock.now += 3600
    assert await box.pool.begin("c-1").get() == HOME
    assert await box.pool.begin("c-2").get() == WORK
    assert await box.pool.begin().get() == WORK


async def test_key_pool_goes_on_without_a_key_that_is_missing() -> None:
    box = Box({"BYOK_KEY_BOX__HOME": HOME})
    assert await box.pool.get() == HOME
    with pytest.raises(KeyMissing, match="box/home"):
        await Box({}).pool.get()


async def test_key_pool_forgets_everything_on_a_reload() -> None:
    box = Box({"BYOK_KEY_BOX__HOME": HOME})
    assert await box.pool.get() == HOME
    box.environ |= BOTH
    box.pool.forget(everywhere=False)
    assert await box.pool.get() == WORK


async def test_key_pool_looks_only_the_refused_key_up_again() -> None:
    box = Box()
    key = box.pool.begin()
    await key.get()
    await box.pool.keys[1].get()
    box.environ |= {name: f"{value}-new" for name, value in BOTH.items()}
    key.forget()
    assert await key.get() == f"{WORK}-new"
    key.replace(60)
    assert await key.get() == HOME
