"""A key is looked up once, kept out of logs, and looked up anew when refused."""

import pytest

from byok.errors import KeyMissing
from byok.keys.ladder import KeyLadder, KeyWanted
from byok.keys.lookup import UpstreamKey
from byok.redact import Redactor
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


async def test_key_lookup_is_repeated_after_a_refused_key() -> None:
    environ = {"BYOK_KEY_BOX": KEY}
    key = lookup(environ, KeyWanted("box", URL))
    await key.get()
    environ["BYOK_KEY_BOX"] = "another-0123456789"
    key.forget()
    assert await key.get() == "another-0123456789"


async def test_key_lookup_is_optional_for_an_upstream_without_keys() -> None:
    assert await lookup({}, KeyWanted("box", URL)).get() == ""


@pytest.mark.parametrize("field", ["preset_env", "named_env"])
async def test_key_lookup_reports_a_missing_key(field: str) -> None:
    wanted = KeyWanted("box", URL, **{field: "BOX_API_KEY"})  # type: ignore[arg-type]
    with pytest.raises(KeyMissing, match="BOX_API_KEY"):
        await lookup({}, wanted).get()


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


async def test_key_lookup_reads_cheap_sources_for_a_local_server_at_once() -> None:
    wanted = KeyWanted("box", "http://127.0.0.1:9/v1")
    ladder = KeyLadder(environ={"BYOK_KEY_BOX": KEY}, keyring=store_of(FakeRing()))
    assert await UpstreamKey(ladder, wanted, Redactor(), local=True).get() == KEY


async def test_key_lookup_of_one_of_several_keys_reports_a_missing_one() -> None:
    with pytest.raises(KeyMissing, match="box/work"):
        await lookup({}, KeyWanted("box", URL, label="work")).get()


async def test_key_lookup_of_an_only_key_has_no_other_one() -> None:
    key = lookup({"BYOK_KEY_BOX": KEY}, KeyWanted("box", URL))
    assert key.begin("c-1") is key
    assert key.replace(60) is False
    assert await key.get() == KEY
