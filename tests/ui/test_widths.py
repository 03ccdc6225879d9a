"""What has room: tables are whole from the widths of a phone to a large screen's."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.async_api import Page, expect

from byok.core.platform.paths import find_paths
from tests.fakes.daemon import Editor, settings_for
from tests.fakes.journal_entries import entry, write_journal
from tests.fakes.pages import open_panel, set_look, settle
from tests.fakes.upstream import FakeUpstream

DAY = 86_400
MODEL = "maker/model-of-a-name-4.5"
WIDTHS = (360, 640, 1001, 1100, 1199, 1200, 1280, 1920)
# Which tables can be scrolled sideways, and by how much.
_WIDER = """() => [document.documentElement, ...document.querySelectorAll(".scroll")]
  .map((one) => one.scrollWidth - one.clientWidth).filter(Boolean)"""
_LINES = """(cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
}"""


@pytest.fixture
def daemon_settings(fake: FakeUpstream) -> dict[str, Any]:
    """A model with a long name, whose cache spares $9 in a thousand tokens."""
    fake.models = [MODEL]
    facts = {MODEL: {"price_input": 10_000, "price_cache_read": 1_000}}
    return settings_for(fake.url, model=MODEL, facts=facts)


@pytest.fixture
def clock() -> Callable[[], float]:
    """Yesterday: its moments are told with the day."""
    return lambda: time.time() - DAY


async def widths_with_scroll(page: Page) -> dict[int, list[int]]:
    """Return at which widths something is wider than its place."""
    scrolling = {}
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 900})
        scrolling[width] = await page.evaluate(_WIDER)
    return {width: wider for width, wider in scrolling.items() if wider}


async def test_conversations_and_live_requests_fit_the_page(
    page: Page, editor: Editor
) -> None:
    start = time.time() - 40 * DAY
    used = {"upstream": "fake", "model": MODEL, "folder": "a-project"}
    write_journal(
        find_paths().journal,
        [
            entry(started=start, client="intellij/0.600.0", **used),
            entry(started=start + 900, cache_read_tokens=0, repairs=12, **used),
            entry(started=start + 901, outcome="failed", cost=None, **used),
            entry(started=start + 902, conversation="b", cost=None),
        ],
    )
    rows = page.locator("tbody tr")
    for language in ("en", "zh"):
        await page.set_viewport_size({"width": 1280, "height": 900})
        await set_look(page, "language", language)
        await open_panel(page, "conversations")
        await expect(rows.first).to_be_visible()
        assert await page.locator("td .badge").count() == 3
        assert await widths_with_scroll(page) == {}
    await page.set_viewport_size({"width": 1280, "height": 900})
    await editor.chat()
    await open_panel(page, "live")
    await expect(rows).to_have_count(1)
    for language in ("zh", "en"):
        await page.set_viewport_size({"width": 1280, "height": 900})
        await set_look(page, "language", language)
        await settle(page)
        assert await widths_with_scroll(page) == {}
        for width in (360, 1001, 1200, 1280):
            await page.set_viewport_size({"width": width, "height": 900})
            assert await rows.locator("td").last.evaluate(_LINES) == 1, width
