"""Keys are stored and removed on the page, and never shown."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from byok.core.platform.paths import find_paths
from byok.settings.keys import fingerprint
from byok.settings.keys.vault import Vault
from tests.fakes.daemon import running_on_file, write_settings
from tests.fakes.dashboard import Page, signed_in
from tests.fakes.patience import until
from tests.fakes.ring import FakeRing, store_of
from tests.fakes.upstream import FakeUpstream

KEY = "sk-canary0123456789"


def write(fake: FakeUpstream) -> None:
    write_settings(
        f'[upstreams.fake]\nbase_url = "{fake.url}"\nmodel = "m"\n'
        f'[upstreams.two]\nbase_url = "{fake.url}"\nkey_names = ["work"]\n'
    )


@pytest.fixture
def ring() -> FakeRing:
    """The keyring of the daemon."""
    return FakeRing()


@pytest.fixture
async def page(fake: FakeUpstream, ring: FakeRing) -> AsyncIterator[Page]:
    """A session of a daemon with two upstreams and a keyring."""
    write(fake)
    async with running_on_file(keyring=store_of(ring)) as editor:
        yield await signed_in(editor)


def entry(name: str, address: str) -> dict[str, str]:
    return {"name": name, "key": KEY, "address": address}


def origin(fake: FakeUpstream) -> str:
    return fake.url.removesuffix("/v1")


async def test_a_key_is_stored_used_and_removed(
    fake: FakeUpstream, page: Page, ring: FakeRing
) -> None:
    editor = page.editor
    stored = await page.raw(
        "key-set", {"name": "fake", "key": f" {KEY}\n", "address": fake.url}
    )
    assert stored.json == {
        "origin": origin(fake),
        "fingerprint": fingerprint(KEY),
    }
    assert KEY.encode() not in stored.raw
    assert KEY not in editor.services.redactor(f"a {KEY}")
    assert ring.kept == {("byok", f"fake@{origin(fake)}"): KEY}
    sent = f"Bearer {KEY}"  # a list that failed for want of it is asked for again
    await until(lambda: sent in [h.get("Authorization") for h in fake.list_headers])
    await editor.chat()
    assert fake.headers[-1]["Authorization"] == f"Bearer {KEY}"
    rows = (await page.call("keys"))["keys"]
    (row,) = [row for row in rows if row["upstream"] == "fake"]
    assert (row["source"], row["fingerprint"]) == ("OS keyring", fingerprint(KEY))
    test = partial(page.call, "key-test", {"upstream": "fake"})
    assert (await test())["with_key"]
    assert (await page.call("key-remove", {"name": "fake"}))["removed"]
    assert not (await test())["with_key"]  # its models are listed all the same
    assert not (await page.call("key-remove", {"name": "fake"}))["removed"]
    await editor.chat()
    assert "Authorization" not in fake.headers[-1]
    assert ring.kept == {}


async def test_one_of_several_keys_is_stored_by_its_name(
    fake: FakeUpstream, page: Page, ring: FakeRing
) -> None:
    assert await page.refused(
        "key-set", {"name": "two", "key": KEY, "address": fake.url}
    ) == (
        400,
        "config",
    )
    await page.call("key-set", entry("two/work", fake.url))
    await page.call("key-set", entry("groq", "https://api.groq.com/x"))
    names = [entry for _, entry in ring.kept]
    assert names == [f"two/work@{origin(fake)}", "groq@https://api.groq.com"]


async def test_a_key_belongs_to_its_address(fake: FakeUpstream) -> None:
    """R7: with another address it is not sent."""
    write(fake)
    async with FakeUpstream() as other:
        async with running_on_file(keyring=store_of(FakeRing())) as editor:
            page = await signed_in(editor)
            await page.call("key-set", entry("fake", fake.url))
            form = await page.call("settings")
            path = ["upstreams", "fake", "base_url"]
            change = {"path": path, "value": other.url}
            body = {"revision": form["revision"], "changes": [change]}
            assert (await page.call("settings-save", body))["errors"] == []
            rows = (await page.call("keys"))["keys"]
            (row,) = [row for row in rows if row["upstream"] == "fake"]
            assert (row["source"], row["fingerprint"]) == ("none", "")
            await editor.chat()
        assert len(other.headers) == 1
        assert "Authorization" not in other.headers[0]


@pytest.mark.parametrize(
    ("ring", "told"),
    [
        (FakeRing(error=type("KeyringLocked", (Exception,), {})()), "locked"),
        (FakeRing(error=type("NoKeyringError", (Exception,), {})()), "no OS keyring"),
        (FakeRing(forgets=True), "did not store"),
    ],
)
async def test_a_keyring_that_fails_is_told_with_other_ways(
    fake: FakeUpstream, ring: FakeRing, told: str
) -> None:
    write(fake)
    async with running_on_file(keyring=store_of(ring)) as editor:
        page = await signed_in(editor)
        answer = await page.raw("key-set", entry("fake", fake.url))
    error = answer.json["error"]
    assert answer.status == 400
    assert told in error["message"]
    assert "byok keys set fake --store key-file" in error["hint"]
    assert "BYOK_KEY_FAKE" in error["hint"]
    assert KEY.encode() not in answer.raw


async def test_without_a_keyring_a_key_goes_into_the_vault_if_the_user_wants(
    fake: FakeUpstream,
) -> None:
    write(fake)
    ring = FakeRing(error=type("NoKeyringError", (Exception,), {})())
    paths = find_paths()
    async with running_on_file(keyring=store_of(ring)) as editor:
        page = await signed_in(editor)
        told = await page.call("keys")
        assert "no OS keyring" in told["keyring"] and told["vault"] == ""
        assert not paths.vault.exists()  # before anybody wants it
        await page.call("key-set", {**entry("fake", fake.url), "vault": True})
        assert KEY.encode() not in paths.vault.read_bytes()
        assert paths.vault_key.stat().st_mode & 0o077 == 0
        await editor.chat()
        assert fake.headers[-1]["Authorization"] == f"Bearer {KEY}"
        [row] = [one for one in (await page.call("keys"))["keys"] if one["fingerprint"]]
        assert row["source"] == "vault"
        gone = {"name": "fake", "vault": True}
        assert (await page.call("key-remove", gone))["removed"]
        assert not (await page.call("key-remove", gone))["removed"]


async def test_a_vault_with_a_passphrase_is_not_opened_otherwise(
    fake: FakeUpstream,
) -> None:
    write(fake)
    paths = find_paths()
    Vault(paths.vault, {"BYOK_VAULT_PASSPHRASE": "of its owner"}).set("x", KEY)
    ring = FakeRing(error=type("NoKeyringError", (Exception,), {})())
    async with running_on_file(keyring=store_of(ring)) as editor:
        page = await signed_in(editor)
        assert "locked" in (await page.call("keys"))["vault"]
        body = {**entry("fake", fake.url), "vault": True}
        assert await page.refused("key-set", body) == (400, "config")
    assert not paths.vault_key.exists()


async def test_keys_are_told_in_the_language_of_the_page(
    fake: FakeUpstream, page: Page, ring: FakeRing
) -> None:
    await page.call("key-set", entry("fake", fake.url))
    page.language = "zh-CN"
    [row] = [one for one in (await page.call("keys"))["keys"] if one["fingerprint"]]
    assert row["source"].isascii()  # by which the page knows what it can replace
    assert not row["from"].isascii()
    ring.error = type("NoKeyringError", (Exception,), {})()
    told = await page.call("keys")
    assert not told["keyring"].isascii()
    assert "(" not in told["keyring"]  # the reason alone: the page has the sentence
    page.language = "en"
    assert (await page.call("keys"))["keyring"].startswith("no OS keyring")


WRONG: list[dict[str, Any]] = [
    {},
    {"name": "fake"},
    {"name": "fake", "key": "short"},
    {"name": "fake", "key": "with a space in it"},
    {"name": "fake", "key": "x" * 513},
    {"name": "fake", "key": ["x" * 20]},
    {"name": "", "key": KEY},
    {"name": "nobody", "key": KEY},
    {"name": "fake", "key": KEY, "address": ["https://x"]},
    {"name": "https://evil.example/v1", "key": KEY},
    {"name": "x" * 81, "key": KEY},
    {"name": 7, "key": KEY},
]


async def test_what_is_no_key_or_no_name_is_refused(page: Page, ring: FakeRing) -> None:
    for body in WRONG:
        answer = await page.raw("key-set", body)
        assert answer.status in (400, 422), body
        assert KEY.encode() not in answer.raw
    assert ring.kept == {}


async def test_a_key_is_nowhere_on_disk(fake: FakeUpstream) -> None:
    """Neither in a capture, nor in journal, log or settings."""
    write(fake)
    fake.models_error = "bad one {key} for you"
    async with running_on_file(keyring=store_of(FakeRing())) as editor:
        await editor.post("/byok/capture", {"switch": "on", "seconds": 60})
        page = await signed_in(editor)
        await page.call("key-set", entry("fake", fake.url))
        answer = await page.raw("key-test", {"upstream": "fake"})
        assert KEY.encode() not in answer.raw
        await editor.chat()
        await editor.post("/byok/capture", {"switch": "off"})
    root = find_paths().config.parent
    files = [path for path in root.rglob("*") if path.is_file()]
    assert [path for path in files if KEY.encode() in Path(path).read_bytes()] == []
    assert any("capture" in str(path) for path in files)


async def test_what_is_stored_nowhere_is_not_remembered(page: Page) -> None:
    for name, text in (
        ("fake", "x" * 200_000),
        ("fake", "a whole file"),
        ("nobody", "function"),
    ):
        await page.refused("key-set", {"name": name, "key": text})
        assert page.editor.services.redactor(text) == text


ADDRESSES = (
    "",
    "https://other.example/v1",
    "http://127.0.0.1:9/v1",
    "http://[::1",
    "{origin}.evil.example/v1",
    "{origin}@evil.example/v1",
)


async def test_a_key_for_another_address_than_the_one_shown_is_not_stored(
    fake: FakeUpstream, page: Page, ring: FakeRing
) -> None:
    """R7: the settings may have changed since the page read them."""
    for address in ADDRESSES:
        shown = address.replace("{origin}", origin(fake))
        answer = await page.raw("key-set", entry("fake", shown))
        error = answer.json["error"]
        assert (answer.status, error["code"]) == (409, "settings_changed"), address
        assert fake.url in error["message"]
    assert ring.kept == {}
