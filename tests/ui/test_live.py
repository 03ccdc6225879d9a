"""The panel of live requests, and the one stream that feeds it."""

import asyncio
import re
from typing import Any

import pytest
from playwright.async_api import Page, expect

from byok.core.error_table import error_rows
from tests.fakes.daemon import Editor, settings_for
from tests.fakes.pages import Watch, axe, open_panel, settle
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import (
    DONE,
    FakeUpstream,
    Script,
    delta,
    event,
    refusal,
)

# Wait until the page was told of a failed request, which its panel was told before.
_HAS_FAILED = """async () => {
  const { onRequests } = await import("/ui/live.js");
  const heard = new AbortController();
  await new Promise((resolve) => onRequests(({ rows }) => {
    if ([...rows.values()].some((row) => row.outcome === "failed")) resolve();
  }, heard.signal));
  heard.abort();
}"""

_IS_ON_TOP = """(cell) => {
  const { x, y, width, height } = cell.getBoundingClientRect();
  return cell.contains(document.elementFromPoint(x + width / 2, y + height / 2));
}"""


@pytest.fixture
def daemon_settings(fake: FakeUpstream) -> dict[str, Any]:
    """A model that is asked again when it is busy, and whose answers have no price."""
    facts = {"fake-model": {"price_input": 1.0}}
    return settings_for(fake.url, model="fake-model", patience=60, facts=facts)


@pytest.fixture
def endless(fake: FakeUpstream) -> FakeUpstream:
    """An upstream whose answer takes half a minute."""
    fake.play(Script([p for _ in range(600) for p in (delta(content="word "), 0.05)]))
    return fake


async def test_a_stream_grows_while_it_is_open_and_is_done_in_the_end(
    page: Page, editor: Editor, endless: FakeUpstream
) -> None:
    await open_panel(page, "live")
    asking = asyncio.ensure_future(editor.chat())
    row = page.locator("tbody tr")
    await expect(row).to_contain_text("streaming")
    sent = row.locator("td[data-label=Sent]")
    await expect(sent).to_contain_text("/s")
    first = await sent.inner_text()
    await expect(sent).not_to_have_text(first)
    time = row.locator("td[data-label=Duration]")
    before = await time.inner_text()
    await expect(time).not_to_have_text(before)
    assert await axe(page) == ""
    asking.cancel()
    await expect(row).to_contain_text("cancelled")
    await expect(
        page.get_by_text("0 running, 1 ended, 0 of them failed, since byok started")
    ).to_have_count(1)


async def test_details_are_read_by_keyboard_and_give_the_focus_back(
    page: Page, editor: Editor
) -> None:
    hostile = "<img src=x onerror=alert(1)>\u202e\u001b[31m"
    await open_panel(page, "live")
    await editor.chat(conversation_id=hostile)
    details = page.get_by_role("button", name=re.compile("^Chat details of "))
    await details.focus()
    await page.keyboard.press("Enter")
    await expect(
        page.get_by_role("heading", name=re.compile("^Request "))
    ).to_be_focused()
    facts = page.locator(".facts")
    await expect(facts).to_contain_text("<img src=x onerror=alert(1)>\\u202e\\x1b[31m")
    await expect(facts).to_contain_text("fake-model")
    await expect(page.locator(".drawer")).to_contain_text("byok waited")
    assert await axe(page) == ""
    link = page.get_by_role("link", name="Show the conversation")
    assert await link.get_attribute("href") == (
        "#/conversations/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%E2%80%AE%1B%5B31m"
    )
    await page.get_by_role("button", name="Close").press("Enter")
    await expect(details).to_be_focused()
    await expect(facts).to_be_hidden()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")  # closes what is on top
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(facts).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(details).to_be_focused()
    await expect(facts).to_be_hidden()


async def test_retries_are_counted_alike_and_words_stay_whole(
    page: Page, editor: Editor, fake: FakeUpstream
) -> None:
    await open_panel(page, "live")
    usage = event(
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}
    )
    fake.play(refusal(503, "busy"), Script([delta("stop", content="Hi."), usage, DONE]))
    await editor.chat(conversation_id="talk")
    row = page.locator("tbody tr")
    await expect(row).to_contain_text("retried ×1")
    await row.get_by_role("button").click()
    mends = page.locator("aside .mends")
    await expect(mends).to_contain_text("retried ×1")
    cause = error_rows()["upstream_failed"].what
    await expect(mends.get_by_role("link", name=cause)).to_be_visible()
    assert await row.locator("td").last.evaluate(_IS_ON_TOP)  # the details cover none
    await expect(page.get_by_text("Whole bar: 30 s or more")).to_be_visible()
    price = row.locator("td[data-label=Cost]")
    await expect(price).to_have_text("unknown price")
    lines = await price.evaluate(
        """(cell) => {
          const range = document.createRange();
          range.setStart(cell.firstChild, 0);
          range.setEnd(cell.firstChild, "unknown".length);
          return range.getClientRects().length;
        }"""
    )
    assert lines == 1
    await open_panel(page, "problems")
    by_model = page.get_by_role("table", name="Repairs by model")
    await expect(by_model.locator("td[data-label=Retries]")).to_have_text("1")
    badge = page.locator(".badge", has_text="retried ×1")
    await expect(badge).to_be_visible()


async def test_the_table_is_filtered_cut_and_stands_still_while_paused(
    page: Page, editor: Editor, fake: FakeUpstream
) -> None:
    await open_panel(page, "live")
    rows = page.locator("tbody tr")
    await editor.chat()
    await expect(rows).to_have_count(1)
    await page.get_by_role("button", name="Pause").click()
    fake.play(refusal(400, "Not like this"))
    await editor.chat()
    await expect(page.get_by_text("Paused: the table does not change.")).to_be_visible()
    await page.evaluate(_HAS_FAILED)
    await expect(rows).to_have_count(1)
    await page.get_by_role("button", name="Pause").click()
    await expect(rows).to_have_count(2)
    summary = page.locator("#tools")
    await editor.post("/get-models", {})
    await expect(summary).to_contain_text("0 running, 2 ended, 1 of them failed")
    await page.get_by_role("button", name="All", exact=True).click()
    await expect(rows).to_have_count(3)
    await expect(summary).to_contain_text("0 running, 3 ended, 1 of them failed")
    await page.get_by_role("button", name="Failed", exact=True).click()
    await expect(rows).to_have_count(1)
    await expect(summary).to_contain_text("0 running, 1 ended, 1 of them failed")
    await expect(rows).to_contain_text("Not like this")
    await page.get_by_role("button", name="Running", exact=True).click()
    await expect(page.get_by_text("No request matches the filter.")).to_be_visible()
    await page.get_by_role("button", name="Failed", exact=True).click()
    for number in range(54):
        await editor.chat(conversation_id=f"talk {number}")
    await expect(rows).to_have_count(50)
    await page.get_by_role("button", name="Show 5 older requests").click()
    await expect(rows).to_have_count(55)
    await expect(page.get_by_role("region", name="Requests")).to_be_focused()
    await rows.first.get_by_role("button").click()
    await expect(page.locator(".facts")).to_contain_text("talk 53")


async def test_requests_are_found_by_words_which_stay(
    page: Page, editor: Editor, fake: FakeUpstream
) -> None:
    await open_panel(page, "live")
    rows = page.locator("tbody tr")
    await editor.chat(conversation_id="Tea Time")
    await editor.chat(conversation_id="third")
    fake.play(refusal(400, "Not like this"))
    await editor.chat(conversation_id="other")
    await expect(rows).to_have_count(3)
    await page.keyboard.press("/")
    search = page.get_by_role("searchbox")
    await expect(search).to_be_focused()
    await search.fill("FAKE-model time")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("done")
    await search.fill("not like")
    await expect(rows).to_contain_text("failed")
    await open_panel(page, "models")
    await open_panel(page, "live")
    await expect(search).to_have_value("not like")
    await expect(rows).to_have_count(1)
    await search.fill("third")
    await expect(rows).to_have_count(1)
    await search.fill("nobody")
    await expect(page.get_by_text("No request matches the filter.")).to_be_visible()
    await search.fill("")
    await expect(rows).to_have_count(3)
    assert await axe(page) == ""


async def test_nothing_is_asked_for_while_nobody_sees_the_page(
    page: Page, editor: Editor, watch: Watch
) -> None:
    state = page.locator("#connection")
    await expect(state).to_have_text("Connected")
    await expect(page.locator("[aria-busy]")).to_have_count(0)
    await settle(page)
    await hide(page, hidden=True)
    await expect(state).to_have_text("")
    async with asyncio.timeout(PATIENCE):
        while watch.open:  # the stream, too
            await asyncio.sleep(0.01)
    await watch.take(page)
    await editor.chat()
    assert await watch.take(page) == []
    await hide(page, hidden=False)
    await expect(state).to_have_text("Connected")
    await open_panel(page, "live")
    await expect(page.locator("tbody tr")).to_have_count(1)
    watch.check()
    watch.allow("/ui/api/", "Failed to load resource")
    await editor.daemon.stop()
    await expect(state).to_have_text("byok does not answer")
    assert await axe(page) == ""


async def hide(page: Page, *, hidden: bool) -> None:
    """Make the page believe that nobody sees it, or somebody does."""
    await page.evaluate(
        """(hidden) => {
          const value = { value: hidden, configurable: true };
          Object.defineProperty(document, "hidden", value);
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )
