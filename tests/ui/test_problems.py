"""The panel of repairs and errors."""

import sqlite3
import time
from contextlib import closing
from typing import Any

from playwright.async_api import Page, expect

from byok.core.platform.paths import find_paths
from byok.features.journal.entry import JournalEntry
from tests.fakes.daemon import Editor
from tests.fakes.journal_entries import entry, write_journal
from tests.fakes.pages import axe, open_panel, settle
from tests.fakes.upstream import FakeUpstream, refusal

HOUR = 3600


def ago(hours: float, **fields: Any) -> JournalEntry:
    """A request of some hours ago."""
    return entry(started=time.time() - hours * HOUR, **fields)


def write(*entries: JournalEntry) -> None:
    write_journal(find_paths().journal, entries)


REFUSED = {"outcome": "failed", "error": "upstream_auth"}


async def test_errors_are_told_with_their_cures_and_requests(page: Page) -> None:
    write(
        ago(3, **REFUSED),
        ago(2, **REFUSED, conversation="other"),
        ago(1, outcome="failed", error="of_a_later_byok"),
        ago(200, outcome="failed", error="upstream_garbled"),
    )
    await open_panel(page, "problems")
    errors = page.locator("article")
    codes = await errors.locator("h3").all_inner_texts()
    assert codes == ["of_a_later_byok", "upstream_auth"]
    assert "does not know this code" in await errors.first.inner_text()
    told = await errors.nth(1).inner_text()
    for words in ("×2", "Keys", "What to do:", "one:m", "Latest requests (2)"):
        assert words in told
    assert "byok keys set NAME" in await errors.nth(1).locator("code").all_inner_texts()
    await page.get_by_label("Period").select_option("30")
    await expect(errors).to_have_count(3)
    await errors.nth(1).locator("summary").click()
    assert await axe(page) == ""
    await errors.nth(1).get_by_role("link", name="other").click()
    await expect(page.locator("ol.turns > li")).to_have_count(1)


async def test_repairs_are_told_by_model_and_explained(page: Page) -> None:
    write(
        *(ago(n, model="good", upstream="a") for n in (1, 2, 3)),
        ago(4, model="good", upstream="a", repairs=1),
        ago(5, model="bad", upstream="a", dropped_calls=2, notices=1),
        *(ago(6 + n, model="bad", upstream="a", repairs=1) for n in range(14)),
    )
    await open_panel(page, "problems")
    rows = page.get_by_label("Repairs by model").locator("tbody tr")
    told = [" ".join(row.split()) for row in await rows.all_inner_texts()]
    assert told == [
        "a:bad 15 15 (100%) 14 2 0 0 1",
        "a:good 4 1 (25%) 1 0 0 0 0",
    ]
    await page.get_by_text("What these words mean").click()
    assert "incomplete calls" in await page.locator("dl.words").inner_text()
    last = page.get_by_label("Latest affected requests")
    await expect(last.locator("tbody tr")).to_have_count(10)
    assert "repaired ×1" in await last.inner_text()
    await page.locator("summary", has_text="6 older requests").click()
    assert await axe(page) == ""


async def test_a_page_without_problems_says_so_and_what_is_damaged(page: Page) -> None:
    await open_panel(page, "problems")
    panel = page.locator(".panel.problems")
    refresh = page.get_by_role("button", name="Refresh")
    assert "No model was asked in this period." in await panel.inner_text()
    assert await axe(page) == ""
    write(ago(1), ago(1))
    await refresh.click()
    await expect(panel).to_contain_text("All is well")
    await expect(page.locator("article")).to_have_count(0)
    assert await axe(page) == ""
    write(ago(3, **REFUSED), ago(2, **REFUSED))
    with closing(sqlite3.connect(find_paths().journal)) as db, db:
        db.execute("UPDATE request SET client = x'00' WHERE id = 3")
    await refresh.click()
    await expect(panel).to_contain_text("Damaged requests that are not shown: 1.")
    await expect(page.locator("article")).to_have_count(1)


async def test_a_refresh_leaves_the_user_where_they_are(page: Page) -> None:
    write(ago(3, **REFUSED), ago(2, outcome="failed", error="upstream_garbled"))
    await open_panel(page, "problems")
    errors = page.locator("article")
    await errors.nth(1).locator("summary").click()
    link = errors.nth(1).get_by_role("link")
    await link.focus()
    write(ago(1, outcome="failed", error="upstream_timeout"))
    await page.evaluate(
        "[...document.querySelectorAll('button')]"
        ".find((button) => button.textContent === 'Refresh').click()"
    )
    await expect(errors).to_have_count(3)
    await settle(page)
    await expect(errors.nth(2).get_by_role("link")).to_be_focused()
    assert await errors.locator("details[open]").count() == 1


async def test_what_fails_now_comes_by_itself(
    page: Page, editor: Editor, fake: FakeUpstream
) -> None:
    await open_panel(page, "problems")
    assert "No model was asked" in await page.locator(".panel.problems").inner_text()
    fake.play(refusal(401, "no such key"))
    await editor.chat(conversation_id="c0ffee")
    errors = page.locator("article")
    await expect(errors).to_have_count(1)
    assert "upstream_auth" in await errors.first.inner_text()
    await errors.first.locator("summary").click()
    await errors.first.get_by_role("link", name="c0ffee").click()
    turns = page.locator("ol.turns > li")
    await expect(turns).to_have_count(1)
    await editor.chat(conversation_id="c0ffee")
    await expect(turns).to_have_count(2)
