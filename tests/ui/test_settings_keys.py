"""Keys on the settings panel: for the address that is shown, and for no other."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page, Route, expect

from tests.fakes.daemon import Editor, running_on_file, write_settings
from tests.fakes.dashboard import text_for
from tests.fakes.pages import (
    Watch,
    axe,
    control,
    field,
    open_panel,
    save_button,
    unfold,
)
from tests.fakes.ring import FakeRing, store_of
from tests.fakes.upstream import FakeUpstream

KEY = "sk-canary0123456789"


@pytest.fixture
def ring() -> FakeRing:
    return FakeRing()


@pytest_asyncio.fixture(loop_scope="session")
async def editor(
    clean_environment: Path, fake: FakeUpstream, ring: FakeRing
) -> AsyncIterator[Editor]:
    """A daemon with a settings file and a keyring."""
    write_settings(text_for(fake))
    async with running_on_file(keyring=store_of(ring)) as started:
        yield started


async def test_a_key_is_set_used_and_removed(
    page: Page, editor: Editor, fake: FakeUpstream, ring: FakeRing
) -> None:
    await open_panel(page, "settings")
    key = page.locator('[data-key="fake"]')
    await expect(key).to_contain_text("not set A server on this machine rarely needs")
    await key.get_by_role("button", name="Set key").click()
    entry = page.get_by_label("New key")
    await expect(entry).to_be_focused()
    assert await entry.get_attribute("type") == "password"
    await entry.fill(KEY)
    await entry.press("Enter")
    await expect(key).to_contain_text("from: OS keyring")
    await expect(key).to_contain_text("lists with it: 1.")
    await expect(key.get_by_role("button", name="Replace key")).to_be_visible()
    assert KEY not in await page.content()
    await key.get_by_role("button", name="Choose a model for chats").click()
    await expect(page.locator("dialog .group")).to_have_text("fake")
    await page.keyboard.press("Enter")
    await expect(control(page, "routing.default")).to_have_value("byok:fake:m")
    await expect(save_button(page)).to_be_enabled()
    await page.get_by_role("button", name="Discard").click()
    await editor.chat()
    assert fake.headers[-1]["Authorization"] == f"Bearer {KEY}"
    await key.get_by_role("button", name="Test").click()
    await expect(key).to_contain_text("lists with it: 1.")
    await key.get_by_role("button", name="Remove").click()
    await key.locator(".danger").click()
    await expect(key).to_contain_text("not set")
    assert ring.kept == {}


async def test_without_a_keyring_the_vault_is_explained_and_used_if_wanted(
    page: Page, editor: Editor, fake: FakeUpstream, ring: FakeRing
) -> None:
    ring.error = type("NoKeyringError", (Exception,), {})()
    await open_panel(page, "settings")
    key = page.locator('[data-key="fake"]')
    await expect(key).to_contain_text("not set")
    await key.get_by_role("button", name="Set key").click()
    dialog, field = page.get_by_role("dialog"), page.get_by_label("New key")
    note = "cannot be used: no OS keyring is available here. Keep keys in byok's vault"
    await expect(dialog).to_contain_text(note)
    about = dialog.get_by_text("An encrypted file")
    await expect(about).to_be_hidden()
    await dialog.get_by_text("What is the vault?").click()
    await expect(about).to_be_visible()
    assert await axe(page) == ""
    vault = dialog.locator("footer").get_by_label("Keep the key in the vault")
    await field.fill(KEY)
    await field.press("Enter")
    await expect(vault).to_be_focused()  # nothing is kept unless the user wants that
    await vault.check()
    await field.press("Enter")
    await expect(key).to_contain_text("lists with it: 1.")
    await expect(key).to_contain_text("from: vault")
    await editor.chat()
    assert fake.headers[-1]["Authorization"] == f"Bearer {KEY}"
    await key.get_by_role("button", name="Remove").click()
    await key.locator(".danger").click()
    await expect(key).to_contain_text("not set")


async def test_add_key_leads_to_the_key_that_is_missing_or_lets_the_user_choose(
    page: Page,
) -> None:
    fake = {"upstream": "fake", "source": "none", "fingerprint": "", "cure": ""}
    missing, rarely = {**fake, "local": False}, {**fake, "local": True}
    given = {**fake, "source": "FAKE_KEY", "from": "FAKE_KEY", "fingerprint": "1a2b"}
    web = {**missing, "upstream": "web-search", "cure": "byok keys set web-search"}
    dialog = page.get_by_role("dialog")
    for keys, choice, expected in (
        ([missing, {**rarely, "upstream": "other"}], None, "Key for fake"),
        ([rarely], "fake", "Key for fake"),
        ([rarely], "Add upstream", "Who serves the model?"),
        ([given], None, "Who serves the model?"),
        ([web], None, "keys set web-search"),  # no upstream: by a command
    ):
        answer = {"keys": keys, "keyring": "", "vault": ""}
        await page.route("**/ui/api/keys", partial(Route.fulfill, json=answer))
        await page.reload()
        await open_panel(page, "overview")
        await page.get_by_role("button", name="Add key").click()
        if choice:
            await page.get_by_role("option", name=choice, exact=True).click()
        await expect(dialog).to_contain_text(expected)
        await page.keyboard.press("Escape")
        await page.unroute("**/ui/api/keys")


async def test_a_key_that_the_vendors_variable_gives_is_not_asked_for(
    page: Page,
) -> None:
    async def give(route: Route) -> None:
        answer = await route.fetch()
        form = await answer.json()
        [vendor] = [preset for preset in form["presets"] if preset["name"] == "openai"]
        assert vendor["variable"] == "OPENAI_API_KEY"
        await route.fulfill(json={**form, "presets": [{**vendor, "key_from": source}]})

    await page.route("**/ui/api/settings", give)
    key, dialog = page.locator("#add-key"), page.get_by_role("dialog")
    for source, is_for_any_name in (
        ("OPENAI_API_KEY", True),
        ("BYOK_KEY_OPENAI", False),
    ):
        await open_panel(page, "settings/add/openai")
        await expect(dialog).to_contain_text(f"{source} is an environment variable")
        await expect(key).to_be_hidden()
        await dialog.get_by_label("Name in the settings file").fill("work")
        await expect(key).to_be_visible(visible=not is_for_any_name)
        await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


async def test_no_key_is_taken_for_another_address_or_in_vain(
    page: Page, watch: Watch, ring: FakeRing
) -> None:
    """R7: it would be stored for the address in force."""
    await open_panel(page, "settings")
    await unfold(page)
    key = page.locator('[data-key="fake"]')
    address = control(page, "upstreams.fake.base_url")
    note = field(page, "upstreams.fake.base_url").locator(".note")
    usual = await address.input_value()
    await address.fill("https://other.example/v1")
    await expect(note).to_contain_text("Set it again")
    await key.get_by_role("button", name="Set key").click()
    await expect(key.get_by_role("alert")).to_contain_text("Save it first")
    await expect(page.get_by_label("New key")).to_have_count(0)
    await address.fill(usual)
    await expect(note).to_be_empty()
    await key.get_by_role("button", name="Set key").click()
    watch.allow("409 ")
    refusal = {"error": {"code": "settings_changed", "message": "No.", "hint": ""}}
    refused = partial(Route.fulfill, status=409, json=refusal)
    await page.route("**/ui/api/key-set", refused)
    await page.get_by_label("New key").fill(KEY)
    await page.get_by_label("New key").press("Enter")
    await expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()
    await expect(page.get_by_label("New key")).to_have_value(KEY)
    assert ring.kept == {}
    row = {"upstream": "fake", "source": "FAKE_KEY", "from": "FAKE_KEY"}
    keys = [{**row, "fingerprint": "1a2b"}]
    fulfill_keys = partial(Route.fulfill, json={"keys": keys, "keyring": ""})
    await page.route("**/ui/api/keys", fulfill_keys)
    await page.keyboard.press("Escape")
    await open_panel(page, "search")
    await open_panel(page, "settings")
    await key.get_by_role("button", name="Where the key comes from").click()
    await expect(page.get_by_label("New key")).to_be_hidden()
    await expect(page.get_by_role("dialog")).to_contain_text(
        "FAKE_KEY is an environment"
    )
