"""The settings are changed elsewhere while the panel is open."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from byok.core.platform.paths import find_paths
from tests.fakes.daemon import Editor
from tests.fakes.pages import Watch, open_panel
from tests.fakes.settings_daemon import running_on_file, write_settings
from tests.fakes.settings_panel import control, save, save_button, text_for
from tests.fakes.upstream import FakeUpstream


@pytest_asyncio.fixture(loop_scope="session")
async def editor(clean_environment: Path, fake: FakeUpstream) -> AsyncIterator[Editor]:
    """A daemon with a settings file."""
    write_settings(text_for(fake))
    async with running_on_file() as started:
        yield started


@pytest.fixture
def file() -> Path:
    return find_paths().config


async def test_who_changed_the_file_meanwhile_is_heard(
    page: Page, watch: Watch, fake: FakeUpstream, file: Path
) -> None:
    watch.allow("409 ")
    await open_panel(page, "settings")
    await control(page, "chat.temperature").fill("1.5")
    await control(page, "chat.max_tokens").fill("99")
    write_settings(text_for(fake).replace("0.5", "0.7"))
    await save_button(page).click()
    box = page.locator(".conflict")
    await expect(box).to_contain_text("The file has changed in the meantime")
    await expect(box.locator("tbody tr")).to_have_count(1)
    await expect(box.locator("tbody")).to_contain_text("0.7")
    assert "0.7" in file.read_text()
    await box.get_by_role("button", name="Use the file's").click()
    await expect(control(page, "chat.temperature")).to_have_value("0.7")
    await save(page)
    assert file.read_text() == (
        text_for(fake).replace("0.5 # not too wild\n", "0.7 # not too wild\n")
        + "max_tokens = 99\n"
    )


async def test_a_conflict_that_cannot_be_looked_at_is_told(
    page: Page, watch: Watch, fake: FakeUpstream
) -> None:
    watch.allow("409 ", "/ui/api/settings", "Failed to load resource")
    await open_panel(page, "settings")
    await control(page, "chat.max_tokens").fill("99")
    write_settings(text_for(fake).replace("0.5", "0.7"))
    await page.route("**/ui/api/settings", lambda route: route.abort())
    await save_button(page).click()
    await expect(page.locator("#main .error")).to_contain_text("byok does not answer")
    await expect(control(page, "chat.max_tokens")).to_have_value("99")


@pytest.mark.parametrize("of_page", ["added", "removed"])
async def test_an_upstream_that_another_page_has_added_or_removed(
    page: Page, watch: Watch, fake: FakeUpstream, file: Path, of_page: str
) -> None:
    watch.allow("409 ")
    groq = '\n[upstreams.groq]\nmodel = "x"\n'
    write_settings(text_for(fake) + ("" if of_page == "added" else groq))
    await open_panel(page, "settings")
    if of_page == "added":
        await page.get_by_text("Add an upstream").click()
        await page.get_by_label("Kind").select_option("groq")
        await page.get_by_role("button", name="Add", exact=True).click()
        await control(page, "upstreams.groq.model").fill("mine")
    else:
        card = page.locator("[data-upstream=groq]")
        await card.get_by_role("button", name="Remove groq").click()
        await card.locator(".danger").click()
        await control(page, "chat.max_tokens").fill("77")
    write_settings(text_for(fake) + (groq if of_page == "added" else ""))
    await save_button(page).click()
    await expect(page.locator(".conflict")).to_be_visible()
    await expect(page.locator(".changes")).to_contain_text("1 change")
    await save(page)
    due = groq.replace("x", "mine") if of_page == "added" else "max_tokens = 77\n"
    assert file.read_text() == text_for(fake) + due
