"""A key is looked up once, kept out of logs, and looked up anew when refused."""

from pathlib import Path

import pytest

from byok.core.errors import KeyMissing
from byok.core.redact import Redactor
from byok.settings.keys import vault as vault_module
from byok.settings.keys.ladder import KeyLadder, KeyWanted
from byok.settings.keys.lookup import UpstreamKey
from byok.settings.keys.vault import Vault
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
