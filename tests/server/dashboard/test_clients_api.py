"""Clients on the page: their state, the lines that would change, and the change."""

from pathlib import Path

import pytest

from byok.core.daemon.token import read_token
from byok.core.platform.paths import find_paths
from tests.fakes.dashboard import Page, age_confirmation
from tests.fakes.journal_entries import entry, write_journal
from tests.fakes.settings_files import lay_vscode

OLD = """{
    "editor.fontSize": 14,
    "augment.advanced": {"completionURL": "http://127.0.0.1:1", "apiToken": "old-one"}
}
"""


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    return lay_vscode(tmp_path, monkeypatch)


async def state_of(page: Page, client: str = "vscode") -> str:
    rows = (await page.call("clients"))["clients"]
    return str(next(row["state"] for row in rows if row["client"] == client))


async def test_a_client_is_connected_after_its_lines_were_shown_and_restored(
    file: Path, page: Page
) -> None:
    file.write_text(OLD)
    assert await state_of(page) == "old"
    shown = await page.call("client-connect", {"client": "vscode"})
    assert file.read_text() == OLD
    text = "".join(line["text"] for line in shown["lines"])
    assert page.editor.daemon.url in text
    assert read_token(find_paths().token) not in text
    assert "old-one" not in text
    assert {line["mark"] for line in shown["lines"]} == {" ", "-", "+"}
    assert (shown["file"], shown["needed"]) == (str(file), True)

    asked = {"client": "vscode", "write": True, "digest": shown["digest"]}
    await page.call("client-connect", asked)
    assert read_token(find_paths().token) in file.read_text()
    assert await state_of(page) == "connected"

    shown = await page.call("client-disconnect", {"client": "vscode"})
    assert shown["lines"]
    await page.call("client-disconnect", {"client": "vscode", "write": True})
    assert file.read_text() == OLD


async def test_a_file_that_changed_since_it_was_shown_is_not_written(
    file: Path, page: Page
) -> None:
    file.write_text("{}")
    shown = await page.call("client-connect", {"client": "vscode"})
    file.write_text('{"mine": 1}')
    asked = {"client": "vscode", "write": True, "digest": shown["digest"]}
    assert await page.refused("client-connect", asked) == (409, "settings_changed")
    assert file.read_text() == '{"mine": 1}'


@pytest.mark.case("B160")
async def test_writing_the_file_needs_a_new_code_and_looking_does_not(
    file: Path, page: Page
) -> None:
    age_confirmation(page)
    for change in ("client-connect", "client-disconnect"):
        asked = {"client": "vscode", "write": True}
        assert await page.refused(change, asked) == (403, "dashboard_confirm")
    assert (await page.call("client-connect", {"client": "vscode"}))["lines"]
    assert not file.exists()


async def test_clients_that_are_not_there_or_have_no_file_are_told(
    file: Path, page: Page
) -> None:
    assert await state_of(page) == "off"
    assert await state_of(page, "cursor") == "missing"
    assert await state_of(page, "jetbrains") == ""
    file.write_text("{ broken")
    [row] = [
        row
        for row in (await page.call("clients"))["clients"]
        if row["client"] == "vscode"
    ]
    assert row["error"]
    for name in ("client-connect", "client-disconnect"):
        refused = await page.refused(name, {"client": "../../etc/passwd"})
        assert refused == (422, "bad_field")
        assert await page.refused(name, {"client": "vscode"}) == (400, "config")


async def test_what_would_be_written_is_shown_of_a_client_that_is_not_found(
    file: Path, page: Page
) -> None:
    shown = await page.call("client-connect", {"client": "cursor"})
    usual = Path(shown["file"])
    assert not usual.parent.exists()
    assert page.editor.daemon.url in "".join(line["text"] for line in shown["lines"])
    asked = {"client": "cursor", "write": True, "digest": shown["digest"]}
    assert await page.refused("client-connect", asked) == (400, "config")
    named = {"client": "cursor", "file": shown["file"]}
    assert await page.refused("client-connect", named) == (400, "config")
    assert not usual.parent.exists()
    assert await state_of(page, "cursor") == "missing"


async def test_a_client_that_is_not_found_is_connected_by_the_file_that_is_named(
    file: Path, page: Page, tmp_path: Path
) -> None:
    away = tmp_path / "portable" / "settings.json"
    away.parent.mkdir()
    away.write_text('{"mine": 1}')
    assert await state_of(page, "cursor") == "missing"
    for named in (away, away.parent):
        asked = {"client": "cursor", "file": str(named)}
        shown = await page.call("client-connect", asked)
        assert (shown["file"], shown["needed"]) == (str(away), True)
    await page.call("client-connect", {**asked, "write": True})
    assert read_token(find_paths().token) in away.read_text()
    assert await state_of(page, "cursor") == "connected"
    await page.call("client-disconnect", {"client": "cursor", "write": True})
    assert away.read_text() == '{"mine": 1}'
    assert await state_of(page, "cursor") == "missing"


async def test_no_other_file_is_shown_or_written_and_only_with_a_new_code(
    file: Path, page: Page, tmp_path: Path
) -> None:
    other = tmp_path / "private.json"
    other.write_text('{"mine": 1}')
    for named in (str(other), "settings.json", "../settings.json", "~", "x" * 4000):
        asked = {"client": "cursor", "file": named, "write": True}
        assert await page.refused("client-connect", asked) == (422, "bad_field"), named
    assert other.read_text() == '{"mine": 1}'
    age_confirmation(page)
    asked = {"client": "cursor", "file": str(file)}
    assert await page.refused("client-connect", asked) == (403, "dashboard_confirm")


async def test_clients_tell_their_last_request(page: Page) -> None:
    now = page.editor.daemon.control.since
    seen = {"vscode/1.2": now - 50, "vscode/1.1": now - 9, "<b>other\u202e": now}
    entries = [entry(client=name, started=when) for name, when in seen.items()]
    write_journal(find_paths().journal, entries)
    told = await page.call("clients")
    last = {row["client"]: row["last"] for row in told["clients"]}
    assert (last["vscode"], last["cli"]) == (now - 9, None)
