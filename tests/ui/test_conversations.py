"""The panel of conversations, and the timeline of one."""

import re
import time
from typing import Any

from playwright.async_api import Page, expect

from byok.core.platform.paths import find_paths
from byok.features.journal.entry import JournalEntry
from tests.fakes.journal_entries import entry, write_journal
from tests.fakes.pages import Watch, axe, open_panel, settle

START = time.time() - 3600


def turn(place: int, **fields: Any) -> JournalEntry:
    """A turn of a conversation, ten seconds after the one before."""
    return entry(request_id=f"r{place}", started=START + 10 * place, **fields)


def write(*entries: JournalEntry) -> None:
    write_journal(find_paths().journal, entries)


async def test_a_conversation_is_found_and_told_as_a_timeline(page: Page) -> None:
    write(
        turn(0, tool_calls="view x3, save-file", cache_read_tokens=1000),
        turn(1, repairs=2, attempts=2, loop="ended-failing-6", model_asked="sonnet"),
        turn(2, outcome="failed", error="upstream_auth", cost=None),
        turn(3, conversation="other"),
    )
    await open_panel(page, "conversations")
    rows = page.locator("tbody tr")
    assert await rows.locator("a").all_inner_texts() == ["other", "c0ffee-1"]
    await rows.nth(1).get_by_role("link").click()
    turns = page.locator("ol.turns > li")
    await expect(turns).to_have_count(3)
    first, second, third = [await turns.nth(n).inner_text() for n in range(3)]
    assert "first token after 400\xa0ms · 2.5\xa0s in all · 1,200 tokens in" in first
    assert "1,000 of them from the cache · 30 out · $0.25" in first
    badges = page.get_by_label("Tools that the answer called").get_by_role("listitem")
    assert await badges.all_inner_texts() == ["view x3", "save-file"]
    assert "7.5\xa0s after the previous turn" in second
    assert "asked for: sonnet" in second
    for words in ("repaired ×2", "retried ×1", "loop ×6, ended", "ended the turn"):
        assert words in second
    assert "upstream_auth" in third
    assert "What to do:" in third
    assert "byok keys set NAME" in await turns.nth(2).locator("code").all_inner_texts()
    sums = await page.locator("dl.facts").inner_text()
    assert re.search(r"Turns\s+3\s+Failed\s+1\s", sums)
    assert "1 requests of unknown price" in sums
    assert await axe(page) == ""
    await page.get_by_role("link", name="All conversations").click()
    await expect(page.locator("tbody tr")).to_have_count(2)
    assert await axe(page) == ""


async def test_a_long_conversation_comes_in_pages_and_goes_on(page: Page) -> None:
    write(*(turn(place) for place in range(450)))
    await open_panel(page, "conversations/c0ffee-1")
    turns = page.locator("ol.turns > li")
    earlier = page.get_by_role("button", name="Show earlier turns")
    for shown in (200, 400):
        await expect(turns).to_have_count(shown)
        await earlier.click()
    await expect(turns).to_have_count(450)
    await expect(earlier).to_be_hidden()
    assert await page.evaluate("document.activeElement.tagName") == "H3"
    gaps = await page.locator(".turn-head > .quiet").all_text_contents()
    assert gaps == ["", *["7.5\xa0s after the previous turn"] * 449]
    kept = await turns.first.element_handle()
    write(turn(450), turn(451))
    refresh = page.get_by_role("button", name="Refresh")
    await refresh.click()
    await expect(turns).to_have_count(452)
    await expect(refresh).to_be_focused()
    assert await page.evaluate("(turn) => turn.isConnected", kept)


async def test_more_conversations_are_shown_on_demand(page: Page) -> None:
    await open_panel(page, "conversations/nobody's")
    told = await page.locator("#main").inner_text()
    assert "no requests of this conversation" in told
    await open_panel(page, "overview")
    await page.get_by_role("button", name="Look again").click()
    await expect(page.locator("#status")).to_contain_text("looked up again")
    await open_panel(page, "conversations")
    await expect(page.locator("#status")).to_be_empty()
    assert "No conversations yet." in await page.locator(".panel").inner_text()
    write(*(turn(place, conversation=f"c{place}") for place in range(60)))
    await page.get_by_role("button", name="Refresh").click()
    rows = page.locator("tbody tr")
    await expect(rows).to_have_count(50)
    older = page.get_by_role("button", name="Show older conversations")
    await older.click()
    await expect(rows).to_have_count(60)
    await expect(older).to_be_hidden()
    links = await rows.locator("a").all_inner_texts()
    assert links == [f"c{place}" for place in range(59, -1, -1)]


async def test_a_journal_that_cannot_be_read_is_said(page: Page, watch: Watch) -> None:
    journal = find_paths().journal
    journal.parent.mkdir(parents=True, exist_ok=True)
    watch.allow("503 /ui/api/")
    for panel in ("conversations", "conversations/c", "problems"):
        journal.write_bytes(b"no database at all" * 500)
        await open_panel(page, panel)
        told = await page.get_by_role("alert").inner_text()
        assert "cannot be read" in told
        assert "move the file away" in told
        journal.unlink()
        await page.get_by_role("button", name="Refresh").click()
        await expect(page.get_by_role("alert")).to_have_count(0)
        await settle(page)


async def test_what_nobody_told_is_not_shown_as_nothing(page: Page) -> None:
    unknown = dict.fromkeys(("input_tokens", "output_tokens", "cache_read_tokens"))
    unknown["cost"] = None
    write(turn(0, outcome="failed", **unknown), turn(1, outcome="failed", **unknown))
    await open_panel(page, "conversations")
    row = await page.locator("tbody tr").inner_text()
    assert "unknown" in row
    assert "0 / 0" not in row
    await open_panel(page, "conversations/c0ffee-1")
    sums = " ".join((await page.locator("dl.facts").inner_text()).split())
    assert (
        "Tokens in – From the cache – Tokens out – Cost 2 requests of unknown price"
        in sums
    )
