"""Every panel, whatever it shows: it opens, and a machine finds it accessible."""

import pytest
from playwright.async_api import Page, expect

from tests.fakes.pages import axe, open_panel, read_panels


@pytest.mark.parametrize("panel", read_panels())
async def test_a_panel_opens(page: Page, panel: str) -> None:
    await open_panel(page, panel)
    heading = page.locator("h1")
    await expect(heading).to_have_count(1)
    title = await heading.inner_text()
    assert await page.title() == f"{title} · byok"
    assert await axe(page) == ""
