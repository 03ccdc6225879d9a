"""The settings panel: a change reaches the file, the daemon and the next request."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page, Route, expect

from byok.core.errors import ConfigError
from byok.core.platform.paths import find_paths
from byok.features.loops.settings import LoopSettings
from tests.fakes.daemon import Editor
from tests.fakes.pages import axe, open_panel
from tests.fakes.patience import PATIENCE
from tests.fakes.ring import FakeRing, store_of
from tests.fakes.settings_daemon import running_on_file, write_settings
from tests.fakes.settings_panel import (
    control,
    field,
    save,
    save_button,
    text_for,
)
from tests.fakes.upstream import FakeUpstream

HOSTILE = "<img src=x onerror=alert(1)>\\u202e"


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


@pytest.fixture
def file() -> Path:
    return find_paths().config


async def test_a_changed_temperature_is_in_force_for_the_next_chat(
    page: Page, editor: Editor, fake: FakeUpstream, file: Path
) -> None:
    await open_panel(page, "settings")
    bar = page.locator(".changes")
    await expect(bar).to_be_hidden()
    await control(page, "chat.temperature").fill("0.25")
    await expect(bar).to_contain_text("1 change")
    await bar.locator("summary").click()
    await expect(bar.locator(".lines .more")).to_contain_text("0.25 # not too wild")
    await save(page)
    await expect(bar).to_be_hidden()
    await expect(bar.locator(".lines")).to_be_empty()
    await expect(page.get_by_label("Find a setting")).to_be_focused()
    await editor.chat()
    assert fake.requests[-1]["temperature"] == 0.25
    assert file.read_text() == text_for(fake).replace("0.5 # not", "0.25 # not")
    assert "secret-of-the-team" not in await page.content()


async def test_an_error_is_shown_at_its_setting(
    page: Page, fake: FakeUpstream, file: Path
) -> None:
    await open_panel(page, "settings")
    wrong = control(page, "chat.temperature")
    await wrong.fill("3")
    await expect(field(page, "chat.temperature").locator(".fault")).not_to_be_empty()
    await expect(wrong).to_have_attribute("aria-invalid", "true")
    await expect(save_button(page)).to_be_disabled()
    await wrong.fill("0.5")
    await expect(page.locator(".changes")).to_be_hidden()
    await control(page, "routing.default").fill("byok:nobody:x")
    fault = field(page, "routing.default").locator(".fault")
    await expect(fault).to_contain_text("names an upstream that is not configured")
    await expect(save_button(page)).to_be_disabled()
    assert await axe(page) == ""
    await page.get_by_role("button", name="Discard").click()
    await expect(fault).to_be_empty()
    assert file.read_text() == text_for(fake)


async def test_a_list_is_made_empty_and_default_again(
    page: Page, editor: Editor, fake: FakeUpstream, file: Path
) -> None:
    await open_panel(page, "settings")
    await page.locator("[data-group=loops] summary").click()
    polling = field(page, "loops.polling")
    entries, box = polling.locator("textarea"), polling.get_by_label("An empty list")
    await expect(entries).to_have_attribute("placeholder", re.compile("read-process"))
    await box.check()
    await expect(entries).to_have_attribute("placeholder", "")
    await save(page)
    assert file.read_text() == text_for(fake) + "\n[loops]\npolling = []\n"
    assert editor.daemon.control.settings.section(LoopSettings).polling == []
    await expect(box).to_be_checked()
    await entries.fill("read-terminal")
    await expect(box).not_to_be_checked()
    await entries.fill("")
    await save(page)
    assert "polling" not in file.read_text()
    await expect(box).not_to_be_checked()


async def test_what_needs_a_restart_says_so(page: Page, editor: Editor) -> None:
    await open_panel(page, "settings")
    await page.locator("[data-group=retrieval] summary").click()
    await control(page, "retrieval.mode").select_option("ripgrep")
    await expect(page.locator(".changes")).to_contain_text("retrieval.mode")
    await save(page)
    box = page.locator(".restart")
    await expect(box).to_contain_text("retrieval.mode")
    await box.get_by_role("button", name="Restart byok").click()
    await expect(box).to_contain_text("on another port")
    await asyncio.wait_for(editor.daemon.control.ending.wait(), PATIENCE)
    assert editor.daemon.control.again


async def test_two_clicks_save_once_and_what_is_typed_meanwhile_is_kept(
    page: Page, file: Path
) -> None:
    await open_panel(page, "settings")
    held = asyncio.Event()

    async def hold(route: Route) -> None:
        await held.wait()
        await route.continue_()

    await page.route("**/ui/api/settings-save", hold)
    await control(page, "chat.max_tokens").fill("77")
    await save_button(page).dblclick()
    await control(page, "chat.top_p").fill("0.9")
    held.set()
    await expect(page.locator("#status")).to_have_text("Saved and in effect.")
    await expect(page.locator(".conflict")).to_have_count(0)
    await expect(page.locator(".changes")).to_contain_text("1 change")
    assert "max_tokens = 77" in file.read_text()
    await expect(control(page, "chat.top_p")).to_have_value("0.9")
    await save(page)
    assert "top_p = 0.9" in file.read_text()


async def test_a_new_upstream_shows_the_address_of_its_kind(page: Page) -> None:
    await open_panel(page, "settings")
    await page.get_by_text("Add an upstream").click()
    await page.get_by_label("Kind").select_option("groq")
    await page.get_by_label("Name").fill("work")
    await page.get_by_role("button", name="Add", exact=True).click()
    address = control(page, "upstreams.work.base_url")
    await expect(address).to_have_attribute("placeholder", re.compile("api.groq.com"))
    await control(page, "upstreams.work.type").select_option("mistral")
    await expect(address).to_have_attribute("placeholder", re.compile("mistral"))
    await expect(control(page, "upstreams.work.models")).not_to_have_attribute(
        "placeholder", re.compile(".")
    )
    await page.get_by_role("button", name="Discard").click()


async def test_an_upstream_is_added_and_removed(
    page: Page, editor: Editor, fake: FakeUpstream, file: Path
) -> None:
    await open_panel(page, "settings")
    await page.get_by_text("Add an upstream").click()
    await page.get_by_label("Kind").select_option("groq")
    await page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.locator("[data-upstream=groq]")).to_contain_text("new")
    await control(page, "upstreams.groq.model").fill("llama")
    await save(page)
    assert file.read_text().endswith('\n[upstreams.groq]\nmodel = "llama"\n')
    assert "groq" in editor.daemon.services.upstreams
    card = page.locator("[data-upstream=groq]")
    await card.get_by_role("button", name="Remove groq").click()
    await card.locator(".danger").click()
    await expect(card).to_contain_text("removed when you save")
    await save(page)
    assert file.read_text().rstrip() == text_for(fake).rstrip()


async def test_unsaved_changes_are_kept_while_the_page_is_open(page: Page) -> None:
    await open_panel(page, "settings")
    await control(page, "chat.max_tokens").fill("77")
    await open_panel(page, "overview")
    await expect(page.locator("#status")).to_contain_text("unsaved changes are kept")
    await open_panel(page, "settings")
    await expect(control(page, "chat.max_tokens")).to_have_value("77")
    await page.locator("#language").select_option("zh")
    await expect(control(page, "chat.max_tokens")).to_have_value("77")
    await page.get_by_role("button", name="放弃更改").click()


async def test_a_broken_file_is_told_and_nothing_can_be_changed(
    page: Page, file: Path
) -> None:
    file.write_text("[chat\n")
    await open_panel(page, "settings")
    await expect(page.get_by_role("alert").first).to_contain_text("line 1")
    await expect(control(page, "chat.temperature")).to_be_disabled()


async def test_a_file_that_breaks_and_is_mended_meanwhile(
    page: Page, fake: FakeUpstream, file: Path
) -> None:
    """Who comes back from the editor finds the page as it is then."""
    await open_panel(page, "settings")
    file.write_text(text_for(fake) + "[broken\n")
    await control(page, "chat.max_tokens").fill("77")
    bar = page.locator(".changes")
    await expect(bar).to_contain_text("is not valid TOML")
    await expect(save_button(page)).to_be_disabled()
    write_settings(text_for(fake))
    await page.evaluate("dispatchEvent(new Event('focus'))")
    await expect(bar).not_to_contain_text("is not valid TOML")
    await save(page)
    assert "max_tokens = 77" in file.read_text()


async def test_a_file_that_is_there_is_not_called_missing(
    page: Page, editor: Editor, file: Path
) -> None:
    target = file.rename(file.with_name("real.toml"))
    file.symlink_to(target)
    await open_panel(page, "settings")
    await expect(page.get_by_role("alert").first).to_contain_text("is a link")
    await expect(page.locator("main")).to_contain_text("The settings file:")
    file.unlink()
    with pytest.raises(ConfigError, match="is gone"):
        await editor.daemon.control.reload()
    await open_panel(page, "overview")
    await open_panel(page, "settings")
    await expect(page.locator("main")).to_contain_text("The settings file:")


async def test_a_hostile_file_is_shown_as_text(page: Page, fake: FakeUpstream) -> None:
    text = text_for(fake).replace("0.5", f'"{HOSTILE}"')
    write_settings(text + f'[upstreams."{HOSTILE}"]\nmodel = "{HOSTILE}"\n')
    await open_panel(page, "settings")
    told = field(page, "chat.temperature").locator("code")
    await expect(told).to_contain_text("<img src=x onerror=alert(1)>\\u202e")
    assert await page.locator("main img").count() == 0


async def test_settings_are_found_by_words(page: Page) -> None:
    await open_panel(page, "settings")
    await page.get_by_label("Find a setting").fill("dollars")
    await expect(field(page, "caps.usd_per_day")).to_be_visible()
    await expect(field(page, "chat.temperature")).to_be_hidden()
    await page.get_by_label("Find a setting").fill("")
    await expect(field(page, "chat.temperature")).to_be_visible()
