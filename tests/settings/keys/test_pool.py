"""Several keys of one upstream: which is used, which rests, and for how long."""

import pytest

from byok.core.errors import KeyMissing
from byok.core.redact import Redactor
from byok.settings.keys.ladder import KeyLadder, KeyWanted
from byok.settings.keys.lookup import KeyPool, UpstreamKey
from tests.fakes.clock import Clock
from tests.fakes.ring import FakeRing, store_of

URL = "https://api.example.com/v1"
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


async def test_key_pool_prefers_the_first_key() -> None:
    box = Box()
    assert await box.pool.get() == WORK
    assert await box.pool.begin("c-1").get() == WORK
    assert WORK not in box.redactor(f"refused {WORK}")


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


async def test_key_pool_tries_no_key_twice_for_one_request() -> None:
    key = Box().pool.begin()
    assert [key.replace(0), key.replace(0)] == [True, False]


async def test_key_pool_keeps_the_key_of_a_conversation() -> None:
    box = Box()
    key = box.pool.begin("c-1")
    key.replace(60)
    assert await key.get() == HOME
    box.clock.now += 3600
    assert await box.pool.begin("c-1").get() == HOME
    assert await box.pool.begin("c-2").get() == WORK
    assert await box.pool.begin().get() == WORK


async def test_key_pool_remembers_a_thousand_conversations() -> None:
    box = Box()
    first = box.pool.begin("c-0")
    first.replace(60)
    await first.get()
    box.clock.now += 60
    for number in range(1, 1001):
        await box.pool.begin(f"c-{number}").get()
    assert await box.pool.begin("c-0").get() == WORK


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


async def test_key_pool_logs_names_and_no_keys(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    key = Box().pool.begin()
    await key.get()
    key.replace(60)
    assert "box/work rests for 60 s" in caplog.text
    assert WORK not in caplog.text
