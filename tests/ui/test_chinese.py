"""Chinese is written with marks of its own, also where the page puts texts together."""

import re

from playwright.async_api import Browser, expect

from tests.fakes.daemon import Editor
from tests.fakes.pages import open_panel, read_panels, settle, signed_in, unfold

# A mark of Latin script beside a Chinese character, or behind what belongs to one; a
# space where a mark has its own room, or none before a unit.
_WRONG = re.compile(
    r"[一-鿿][ \xa0]?[,:;!?()]|[,:;!?()][ \xa0]?[一-鿿]"
    r"|[，。：；！？）][ \xa0]|\d[秒分小天个次万]"
)
_TEXTS = """() => [document.querySelector("#main").innerText,
  ...[...document.querySelectorAll("[aria-label]")].map((one) => one.ariaLabel)]"""


async def test_no_panel_has_marks_or_spaces_of_latin_script_in_chinese(
    browser: Browser, furnished: Editor
) -> None:
    found = []
    url = furnished.daemon.url
    async with signed_in(browser, url, language="zh", height=2000) as page:
        usage = [f"usage/{part}" for part in ("costliest", "slowest", "failed")]
        for panel in [*read_panels(), *usage]:
            await open_panel(page, panel)
            await settle(page)
            await unfold(page)
            await settle(page)
            texts = await page.evaluate(_TEXTS)
            if panel == "conversations":
                await page.locator("td.lead a").first.click()
                await expect(page.locator(".turn").first).to_be_visible()
                texts += await page.evaluate(_TEXTS)
            for text in "\n".join(texts).splitlines():
                if _WRONG.search(text):
                    found.append((panel, text[:160]))
    assert found == []
