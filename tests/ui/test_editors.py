"""Editors are pointed at byok from the page, after it has shown the lines."""

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from byok.core.daemon.token import read_token
from byok.core.platform.paths import find_paths
from tests.fakes.daemon import Editor
from tests.fakes.pages import axe
from tests.fakes.settings_files import lay_vscode


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    file = lay_vscode(tmp_path, monkeypatch)
    file.write_text('{\n    "editor.fontSize": 14\n}\n')
    return file


async def test_vs_code_is_connected_and_restored_after_its_lines_were_shown(
    settings: Path, page: Page, editor: Editor
) -> None:
    before = settings.read_text()
    await page.get_by_role("button", name="Connect: VS Code", exact=True).click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.locator(".more").first).to_be_visible()
    assert read_token(find_paths().token) not in await dialog.inner_text()
    assert await axe(page) == ""
    assert settings.read_text() == before
    await dialog.get_by_role("button", name="Write settings").click()
    await expect(dialog).to_have_count(0)
    assert read_token(find_paths().token) in settings.read_text()
    row = page.locator("li").filter(has_text="VS Code").first
    await expect(row).not_to_contain_text("not connected")
    await row.get_by_role("button", name="Disconnect: VS Code").click()
    await dialog.get_by_role("button", name="Restore settings").click()
    await expect(row).to_contain_text("not connected")
    await expect(page.locator("#status")).to_contain_text("Reload the window")
    assert settings.read_text() == before
    agent = {"User-Agent": "Augment.vscode-augment/0.600.0"}
    await editor.post("/chat-stream", {"message": "hello"}, headers=agent)
    await expect(row).to_contain_text("asked just now, but its settings file points")
    await page.get_by_role("button", name="Show how: JetBrains").click()
    await expect(dialog).to_contain_text("byok connect jetbrains")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
