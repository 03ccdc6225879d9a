"""What byok demo shows is said to be samples."""

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from byok.cli.demo import UPSTREAM
from tests.fakes.daemon import Editor
from tests.fakes.pages import axe, control, open_panel
from tests.fakes.settings_files import lay_vscode
from tests.fakes.upstream import FakeUpstream, refusal


@pytest.fixture
def daemon_settings(fake: FakeUpstream) -> dict[str, Any]:
    """The upstream of the demo."""
    return {"upstreams": {UPSTREAM: {"base_url": fake.url, "model": "sample"}}}


async def test_the_page_of_the_demo_says_what_it_shows(
    page: Page, editor: Editor, fake: FakeUpstream
) -> None:
    samples = page.locator(".card.note")
    await expect(samples).to_contain_text("made up")
    fake.play(refusal(401, "no"))
    await editor.chat()
    await expect(page.locator(".health.bad")).to_contain_text("rejects the key")
    await expect(samples).to_contain_text("made up")
    assert await axe(page) == ""
    await page.locator("#language").select_option("zh")
    await expect(samples).to_contain_text("byok demo")


async def test_a_file_that_the_demo_changes_is_said_to_be_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: Page
) -> None:
    lay_vscode(tmp_path, monkeypatch)
    await page.reload()
    await page.get_by_role("button", name="Connect: VS Code", exact=True).click()
    await expect(page.get_by_role("dialog")).to_contain_text("gives this file back")


async def test_any_free_port_is_told_as_the_one_that_it_is(
    page: Page, editor: Editor
) -> None:
    await open_panel(page, "settings")
    port = control(page, "server.port")
    await expect(port).to_have_attribute("placeholder", str(editor.daemon.port))


async def test_commands_of_the_page_reach_the_byok_that_shows_it(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal of the user has not the home of the demo."""
    monkeypatch.setenv("BYOK_HOME", "/a home")
    await page.reload()
    await page.get_by_role("button", name="Show how: JetBrains").click()
    commands = page.get_by_role("dialog").locator(".command")
    program = "BYOK_HOME='/a home' byok"
    await expect(commands.get_by_text("byok token")).to_have_text(f"{program} token")
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.locator(".command")).to_have_text(f"{program} dashboard")
