"""Editors are pointed at byok from the page, after it has shown the lines."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from byok.core.daemon.token import read_token
from byok.core.platform.installation import find_command
from byok.core.platform.paths import find_paths
from tests.fakes.daemon import Editor
from tests.fakes.pages import Watch, axe
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
    write = dialog.get_by_role("button", name="Write settings")
    await write.hover()
    assert await axe(page) == ""  # its words can be read below the pointer, too
    await write.click()
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
    await expect(row).to_contain_text("last request just now, but its settings file")
    jetbrains = page.get_by_role("button", name="Show how: JetBrains")
    await expect(jetbrains).to_have_count(0)  # which is not among those that asked
    await page.get_by_role("button", name="Show all programs").click()
    await jetbrains.click()
    await expect(dialog).to_contain_text("byok connect jetbrains")
    await expect(dialog).to_contain_text("search there for Augment")
    addresses = await dialog.locator(".command").all_inner_texts()
    assert [url for url in addresses if "http" in url] == [editor.daemon.url]
    assert read_token(find_paths().token) not in await dialog.inner_text()
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await page.get_by_role("button", name="Show fewer programs").click()
    await expect(jetbrains).to_have_count(0)
    await expect(page.get_by_role("button", name="Show all programs")).to_be_focused()


async def test_an_editor_that_is_not_found_is_connected_by_its_file(
    settings: Path, page: Page, watch: Watch, tmp_path: Path
) -> None:
    watch.allow("400 ")
    away = tmp_path / "portable" / "settings.json"
    await page.get_by_role("button", name="Show all programs").click()
    await page.get_by_role("button", name="Connect: Cursor").click()
    dialog = page.get_by_role("dialog")
    text = await dialog.inner_text()
    assert "Install it" in text and "Cursor/User/settings.json" in text
    await expect(dialog.locator(".more").first).to_be_visible()  # what would be written
    assert "--" not in text  # no option of a command
    assert await axe(page) == ""
    await dialog.locator("summary").click()
    command = f"{find_command()} connect cursor"
    await expect(dialog.locator(".command")).to_have_text(command)
    write = dialog.get_by_role("button", name="Write settings")
    await expect(write).to_be_hidden()
    entry = dialog.get_by_label("Its settings file")
    await expect(entry).to_have_value(re.compile(r"Cursor.User.settings\.json$"))
    await entry.fill(str(away))
    await expect(dialog.locator(".more")).to_have_count(0)
    await entry.press("Enter")
    await expect(dialog.get_by_role("alert")).to_contain_text("does not exist")
    assert "--" not in await dialog.get_by_role("alert").inner_text()
    away.parent.mkdir()
    await entry.press("Enter")
    await expect(dialog.locator(".more").first).to_be_visible()
    await expect(dialog.locator(".command")).to_have_text(
        f'{command} --write --file "{away}"'
    )
    await write.click()
    await expect(dialog).to_have_count(0)
    assert read_token(find_paths().token) in away.read_text()
    await page.get_by_role("button", name="Disconnect: Cursor").click()
    await dialog.get_by_role("button", name="Restore settings").click()
    await expect(dialog).to_have_count(0)
    assert not away.exists()
