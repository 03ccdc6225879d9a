"""byok init: the chosen upstream is asked for its models, with a key that it takes."""

import asyncio
from collections.abc import Iterator

import click
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from byok.cli.asker import Asker, NobodyAsker, YesAsker
from byok.cli.init_steps import find_models
from byok.cli.init_survey import Candidate, FoundBy
from byok.core.errors import ByokError, ConfigError, KeyMissing, UpstreamError
from byok.core.platform.paths import find_paths
from byok.dialects.presets import OPENAI_CHAT, PRESETS, Preset
from byok.settings import UpstreamSettings, load_settings
from byok.settings.keys import KeyLadder, fingerprint
from byok.settings.keys.keyring_store import KeyringStore
from byok.settings.keys.vault import Vault
from tests.fakes.answers import ScriptedPerson
from tests.fakes.ring import FakeRing, store_of
from tests.fakes.upstream import dead_url

KEY, WRONG = "sk-canary0123456789", "sk-refused-9876543210"
NOBODY = NobodyAsker("byok init --yes")


class Vendor:
    """A vendor that takes one key; its preset is `vendor`."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.url = ""

    async def list(self, request: web.Request) -> web.Response:
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.keys.append(key)
        if key != KEY:
            error = {"error": {"message": f"bad key {key}"}}
            return web.json_response(error, status=401)
        return web.json_response({"data": [{"id": "m"}]})


@pytest.fixture
def vendor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Vendor]:
    """Serve in a thread of its own, as the command has its own loop."""
    import threading

    made, loop = Vendor(), asyncio.new_event_loop()
    app = web.Application()
    app.router.add_get("/v1/models", made.list)
    server = TestServer(app, loop=loop)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start_server(), loop).result()
    made.url = str(server.make_url("/v1"))
    preset = Preset({OPENAI_CHAT: made.url}, "VENDOR_API_KEY")
    monkeypatch.setitem(PRESETS, "vendor", preset)
    yield made
    asyncio.run_coroutine_threadsafe(server.close(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def candidate(url: str, source: str = "", **fields: object) -> Candidate:
    section = UpstreamSettings.model_validate({"type": "vendor", **fields})
    return Candidate("vendor", section, url, FoundBy.NAME, key_source=source)


def new_vault() -> Vault:
    paths = find_paths()
    return Vault(paths.vault, {}, key_file=paths.vault_key)


def find(
    one: Candidate, asker: Asker, ring: FakeRing | None = None, **environ: str
) -> list[str]:
    store = store_of(ring or FakeRing())
    ladder = KeyLadder(environ=environ, keyring=store)
    settings = load_settings(find_paths().config)
    models = find_models(one, settings, ladder, store, asker, new_vault())
    return [model.id for model in models]


def test_a_key_of_the_environment_is_used(vendor: Vendor) -> None:
    one = candidate(vendor.url, "VENDOR_API_KEY")
    assert find(one, NOBODY, VENDOR_API_KEY=KEY) == ["m"]
    assert vendor.keys == [KEY]


def test_a_new_key_is_tried_before_it_is_stored(
    vendor: Vendor, capsys: pytest.CaptureFixture[str]
) -> None:
    ring, person = FakeRing(), ScriptedPerson("short", WRONG, f" {KEY}\n")
    assert find(candidate(vendor.url), person, ring) == ["m"]
    origin = vendor.url.removesuffix("/v1")
    assert ring.kept == {("byok", f"vendor@{origin}"): KEY}
    assert vendor.keys[-1] == KEY
    shown = "".join(capsys.readouterr())
    assert fingerprint(KEY) in shown
    assert KEY not in shown
    assert WRONG not in shown


def test_no_key_is_stored_if_none_is_taken(vendor: Vendor) -> None:
    ring = FakeRing()
    with pytest.raises(ConfigError, match="Nothing was stored"):
        find(candidate(vendor.url), ScriptedPerson(WRONG, WRONG, WRONG), ring)
    assert ring.kept == {}


def test_nothing_is_stored_after_ctrl_c(vendor: Vendor) -> None:
    ring = FakeRing()
    with pytest.raises(click.Abort):
        find(candidate(vendor.url), ScriptedPerson(None), ring)
    assert (ring.kept, vendor.keys) == ({}, [])


def test_without_a_keyring_a_person_chooses_a_store_before_typing_the_key(
    vendor: Vendor,
) -> None:
    settings, store = load_settings(find_paths().config), KeyringStore()  # null backend

    def find_with(person: ScriptedPerson) -> list[str]:
        ladder = KeyLadder(environ={}, keyring=store, vault=new_vault())
        one = candidate(vendor.url)
        models = find_models(one, settings, ladder, store, person, new_vault())
        return [model.id for model in models]

    neither = ScriptedPerson("3", KEY)
    with pytest.raises(KeyMissing) as caught:
        find_with(neither)
    assert len(neither.asked) == 1  # not for the key
    assert "BYOK_KEY_VENDOR" in caught.value.hint
    assert "byok keys set vendor --store key-file" in caught.value.hint
    assert not find_paths().vault_key.exists()
    assert find_with(ScriptedPerson("x", "1", KEY)) == ["m"]
    entry = f"vendor@{vendor.url.removesuffix('/v1')}"
    assert new_vault().get(entry) == KEY  # as a service or a restart reads it


@pytest.mark.parametrize("asker", [NOBODY, YesAsker()])
def test_without_a_person_a_missing_key_is_an_error(
    vendor: Vendor, asker: NobodyAsker | YesAsker
) -> None:
    with pytest.raises(ConfigError, match="No key was found for vendor") as caught:
        find(candidate(vendor.url), asker)
    assert "byok keys set vendor" in caught.value.hint


def test_a_refused_key_of_the_environment_is_corrected_there(
    vendor: Vendor, capsys: pytest.CaptureFixture[str]
) -> None:
    person = ScriptedPerson(KEY)
    one = candidate(vendor.url, "VENDOR_API_KEY")
    with pytest.raises(UpstreamError):
        find(one, person, VENDOR_API_KEY=WRONG)
    assert person.asked == []
    shown = "".join(capsys.readouterr())
    assert "VENDOR_API_KEY" in shown
    assert WRONG not in shown


def test_a_refused_key_of_the_keyring_is_replaced(vendor: Vendor) -> None:
    ring = FakeRing()
    entry = ("byok", f"vendor@{vendor.url.removesuffix('/v1')}")
    ring.kept[entry] = WRONG
    one = candidate(vendor.url, KeyringStore.label)
    # A vendor on loopback is asked without the keyring at first.
    assert find(one, ScriptedPerson(KEY), ring) == ["m"]
    assert ring.kept[entry] == KEY


def test_an_upstream_with_a_named_source_is_not_given_another_key(
    vendor: Vendor,
) -> None:
    person = ScriptedPerson(KEY)
    with pytest.raises(ByokError):
        find(candidate(vendor.url, api_key_env="MINE"), person)
    assert person.asked == []


def test_an_upstream_that_is_not_there_changes_nothing() -> None:
    with pytest.raises(UpstreamError):
        url = dead_url()
        section = UpstreamSettings(base_url=url)
        find(Candidate("custom", section, url, FoundBy.NAME), NOBODY)
