"""What holds of every panel, whatever it shows."""

import asyncio
import re

from playwright.async_api import Browser, Page, expect

from tests.fakes.daemon import Editor
from tests.fakes.pages import (
    axe,
    open_panel,
    read_panels,
    set_look,
    settle,
    sign_in,
    signed_in,
    unfold,
    visiting,
)
from tests.fakes.patience import PATIENCE

# Each language, theme and kind of layout: axe is what costs most here.
LOOKS = [(1280, "light", "en"), (360, "dark", "zh")]
WIDTHS = (360, 768, 1920)
_OVERFLOW = """() => [...document.querySelectorAll("body *")]
  .filter((found) => found.getBoundingClientRect().right > innerWidth + 1
    && !found.closest(".scroll, #nav, .hidden, .skip, pre"))
  .map((found) => found.outerHTML.slice(0, 120))"""
_BACKGROUND = "getComputedStyle(document.body).backgroundColor"
_DRAWN = "new Promise((d) => requestAnimationFrame(() => requestAnimationFrame(d)))"
_HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", {configurable: true, get: () => hidden});
  Object.defineProperty(document, "visibilityState",
    {configurable: true, get: () => hidden ? "hidden" : "visible"});
  document.dispatchEvent(new Event("visibilitychange"));
}"""
# A mark of Latin script beside a Chinese character, or behind what belongs to one; a
# space where a mark has its own room, or none before a unit.
_WRONG = re.compile(
    r"[一-鿿][ \xa0]?[,:;!?()]|[,:;!?()][ \xa0]?[一-鿿]"
    r"|[，。：；！？）][ \xa0]|\d[秒分小天个次万]"
)
_TEXTS = """() => [document.querySelector("#main").innerText,
  ...[...document.querySelectorAll("[aria-label]")].map((one) => one.ariaLabel)]"""

# Seconds for which a panel is watched: longer than any pause before it asks again.
_WATCHED = 12
# Panels that ask for nothing once they are shown.
_QUIET = ("settings", "search", "overview")


async def check_width(page: Page) -> None:
    """The page itself does not scroll to the side."""
    wide = await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wide <= 0, await page.evaluate(_OVERFLOW)


async def find_wrong_chinese(page: Page) -> list[str]:
    """Return the lines of a panel in Chinese that have marks or spaces of Latin."""
    await unfold(page)
    await settle(page)
    lines = "\n".join(await page.evaluate(_TEXTS)).splitlines()
    return [line[:160] for line in lines if _WRONG.search(line)]


async def test_a_panel_looks_well(browser: Browser, furnished: Editor) -> None:
    """It has a title, fits every width, axe has nothing to say, Chinese is Chinese."""
    async with signed_in(browser, furnished.daemon.url, theme="auto") as page:
        for width, theme, language in LOOKS:
            await page.emulate_media(
                color_scheme="light" if theme == "dark" else "dark"
            )
            await page.set_viewport_size({"width": width, "height": 900})
            await settle(page)
            before = await page.evaluate(_BACKGROUND)
            await set_look(page, "theme", theme)
            body = page.locator("body")
            await expect(body).not_to_have_css("background-color", before)
            await set_look(page, "language", language)
            await expect(page.locator("html")).to_have_attribute("lang", language)
            for panel in read_panels():
                await open_panel(page, panel)
                assert await axe(page) == "", (panel, width, theme, language)
                if language == "zh":
                    assert await find_wrong_chinese(page) == [], panel
                heading = page.locator("h1")
                await expect(heading).to_have_count(1)
                assert await page.title() == f"{await heading.inner_text()} · byok"
                await check_width(page)
                for wide in WIDTHS if language == "en" else ():
                    await page.set_viewport_size({"width": wide, "height": 900})
                    await page.evaluate(_DRAWN)
                    await check_width(page)
                await page.set_viewport_size({"width": width, "height": 900})
            await set_look(page, "theme", "auto")
        await page.set_viewport_size({"width": 1280, "height": 900})
        for part in ("costliest", "slowest", "failed"):
            await open_panel(page, f"usage/{part}")
            assert await find_wrong_chinese(page) == [], part
        await open_panel(page, "conversations")
        await page.locator("td.lead a").first.click()
        await expect(page.locator(".turn").first).to_be_visible()
        assert await find_wrong_chinese(page) == []
        await open_panel(page, "live")
        name = page.locator("tbody tr td:nth-child(3)").first
        await expect(name).to_have_text("byok:openrouter:anthropic/claude-sonnet-4.5")
        sizes = "(cell) => [cell.scrollWidth - cell.clientWidth, cell.clientHeight]"
        wider, height = await name.evaluate(sizes)
        assert (wider <= 0, height < 70) == (True, True)  # uncut, in two lines
        await open_panel(page, "conversations")
        for width, most in ((360, 150), (640, 110), (1280, 70)):
            await page.set_viewport_size({"width": width, "height": 800})
            row = page.locator("tr").filter(has_text="anthropic").first
            box = await row.bounding_box()
            assert box is not None
            assert box["height"] < most, width
            scrolls = "(one) => one.scrollWidth - one.clientWidth"
            assert await page.locator(".scroll").evaluate(scrolls) == 0, width


async def test_a_panel_asks_only_while_it_is_seen(
    browser: Browser, furnished: Editor
) -> None:
    """Rarely while it is, not in a hidden tab, and never after it was left."""
    url = furnished.daemon.url
    async with visiting(browser, url) as (context, watch):
        await context.clock.install()
        page = await context.new_page()
        await sign_in(page, url)

        async def count(seconds: int) -> list[str]:
            """Return what is asked in so many seconds of the page's clock."""
            await watch.take(page)
            for _ in range(seconds):
                await page.clock.run_for(1000)
            return [line for line in await watch.take(page) if "/ui/api/" in line]

        for panel in read_panels():
            await open_panel(page, panel)
            async with asyncio.timeout(PATIENCE):
                while len(await count(_WATCHED)) > _WATCHED / 2:
                    pass  # as long as files are indexed, their number is asked for
            await page.evaluate(_HIDE, True)
            assert await count(_WATCHED) == [], panel
            await page.evaluate(_HIDE, False)
            # It is told everything anew, which the next panel would ask about once.
            await expect(page.locator("#connection")).to_have_text("Connected")
            other = next(name for name in _QUIET if name != panel)
            await open_panel(page, other)
            assert await count(_WATCHED) == [], panel
            assert watch.open == {"POST /ui/api/live"}  # which all panels share


async def test_sign_in_looks_well(browser: Browser, editor: Editor) -> None:
    async with visiting(browser, editor.daemon.url) as (context, _):
        page = await context.new_page()
        await page.goto(f"{editor.daemon.url}/ui/")
        for width, theme, language in LOOKS:
            await page.set_viewport_size({"width": width, "height": 900})
            await page.evaluate(
                """([theme, language]) => {
                  localStorage.setItem("byok-theme", theme);
                  localStorage.setItem("byok-language", language);
                }""",
                [theme, language],
            )
            await page.reload()
            await page.locator("#code").wait_for()
            await expect(page.locator("html")).to_have_attribute("lang", language)
            assert await axe(page) == "", (theme, language)
            await check_width(page)
