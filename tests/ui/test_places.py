"""Links between panels, and Back: it leads to where the user was."""

import re
import time

from playwright.async_api import Page, expect

from byok.core.platform.paths import find_paths
from tests.fakes.daemon import Editor
from tests.fakes.journal_entries import entry, write_journal
from tests.fakes.pages import open_panel, settle
from tests.fakes.upstream import FakeUpstream, refusal


async def test_back_leads_to_the_place_in_a_list(page: Page) -> None:
    now = time.time()
    talks = [
        entry(started=now - n, conversation=f"talk-{n}", folder=f"folder-{n}")
        for n in range(60)
    ]
    write_journal(find_paths().journal, talks)
    await open_panel(page, "conversations")
    await page.get_by_role("button", name="Show older conversations").click()
    link = page.get_by_role("link", name="folder-55")
    await link.focus()
    top = await page.evaluate("scrollY")
    assert top > 200
    await link.press("Enter")
    title = page.get_by_role("heading", name="folder-55")
    await expect(title).to_be_focused()
    assert await page.evaluate("scrollY") == 0
    await page.go_back()
    await expect(link).to_be_focused()
    assert await page.evaluate("scrollY") == top
    await page.go_forward()
    await expect(title).to_be_visible()
    await page.reload()
    await page.go_back()  # what was noted is gone with the page, the panel is not
    await expect(page.get_by_role("link", name="folder-40")).to_be_visible()
    await open_panel(page, "problems/upstream_auth")  # which is not there
    await expect(page.locator("h1")).to_be_focused()
    await open_panel(page, "live/nobody")
    await expect(page.get_by_text("No requests since byok started.")).to_be_visible()


async def test_a_live_request_leads_to_its_error_and_conversation_and_back(
    page: Page, editor: Editor, fake: FakeUpstream
) -> None:
    await open_panel(page, "live")
    fake.play(refusal(401, "no"))
    await editor.chat(conversation_id="talk")
    await page.get_by_role("button", name=re.compile("^Chat details of ")).click()
    title = page.get_by_role("heading", name=re.compile("^Request "))
    await expect(title).to_be_focused()
    problem = page.get_by_role("link", name="What to do about this error")
    await problem.press("Enter")
    code = page.get_by_role("heading", name="The upstream rejects the key.")
    await expect(code).to_be_focused()
    await page.go_back()
    await expect(title).to_be_visible()
    await expect(problem).to_be_focused()
    talk = page.get_by_role("link", name="Show the conversation")
    await talk.press("Enter")
    await settle(page)
    await expect(page.locator(".turns")).to_contain_text("rejects the key")
    await page.go_back()
    await expect(talk).to_be_focused()
    await page.get_by_role("button", name="Close").press("Enter")
    assert page.url.endswith("#/live")


async def test_back_leads_to_the_list_of_a_day_and_then_to_the_sums(page: Page) -> None:
    now = time.time()
    talks = [
        entry(started=now - n, conversation=f"talk-{n}", folder=f"folder-{n}")
        for n in range(9)
    ]
    write_journal(find_paths().journal, talks)
    await open_panel(page, "usage")
    link = page.get_by_role("link", name="Slowest requests today")
    await page.evaluate("scrollTo(0, 30)")
    await link.press("Enter")
    slowest = page.get_by_role("table", name="Slowest requests today")
    await expect(slowest).to_be_in_viewport()
    talk = slowest.get_by_role("link", name="folder-8")
    await talk.focus()
    top = await page.evaluate("scrollY")
    assert top > 200
    await talk.press("Enter")
    await expect(page.get_by_role("heading", name="folder-8")).to_be_visible()
    await page.go_back()
    await expect(talk).to_be_focused()
    assert await page.evaluate("scrollY") == top
    await page.evaluate("scrollTo(0, 0)")
    await link.press("Enter")  # which leads there again
    await expect(page.locator("summary", has_text="Slowest")).to_be_focused()
    failed = page.get_by_role("link", name="Failed requests today")
    await failed.focus()
    await page.evaluate("scrollTo(0, 20)")
    await failed.press("Enter")
    await expect(page.locator("summary", has_text="Failed")).to_be_focused()
    await page.go_back()
    await expect(slowest).to_be_attached()  # which leads nobody there again
    await settle(page)
    await expect(failed).to_be_focused()
    assert await page.evaluate("scrollY") == 20
    await page.go_back()
    await expect(link).to_be_focused()
    assert await page.evaluate("scrollY") == 30


async def test_back_unfolds_what_was_unfolded(page: Page) -> None:
    failed = {"outcome": "failed", "error": "upstream_timeout"}
    lost = entry(started=time.time() - 60, conversation="talk", folder="shop", **failed)
    write_journal(find_paths().journal, [lost])
    await open_panel(page, "problems")
    await page.get_by_text("Causes and requests").click()
    talk = page.get_by_role("link", name="shop")
    await talk.press("Enter")
    await expect(page.get_by_role("heading", name="shop")).to_be_visible()
    await page.go_back()
    await expect(talk).to_be_focused()
