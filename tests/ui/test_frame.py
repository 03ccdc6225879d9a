"""What holds of every panel, whatever it shows."""

import asyncio
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.fakes.daemon import Editor
from tests.fakes.pages import (
    axe,
    open_panel,
    read_panels,
    settle,
    sign_in,
    signed_in,
    visiting,
)
from tests.fakes.patience import PATIENCE

# Each language, theme and kind of layout: axe is what costs most here.
LOOKS = [(1280, "light", "en"), (360, "dark", "zh")]
WIDTHS = (360, 768, 1280, 1920)
_OVERFLOW = """() => [...document.querySelectorAll("body *")]
  .filter((found) => found.getBoundingClientRect().right > innerWidth + 1
    && !found.closest(".scroll, #nav, .hidden, .skip, pre"))
  .map((found) => found.outerHTML.slice(0, 120))"""
_HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", {configurable: true, get: () => hidden});
  Object.defineProperty(document, "visibilityState",
    {configurable: true, get: () => hidden ? "hidden" : "visible"});
  document.dispatchEvent(new Event("visibilitychange"));
}"""
# Panels that ask for nothing once they are shown.
_QUIET = ("settings", "search", "overview")


@pytest_asyncio.fixture(loop_scope="session")
async def editor(furnished: Editor) -> Editor:
    """The daemon of these tests has something to show in every panel."""
    return furnished


async def check_width(page: Page) -> None:
    """The page itself does not scroll to the side."""
    wide = await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wide <= 0, await page.evaluate(_OVERFLOW)


@pytest.mark.parametrize("panel", read_panels())
async def test_a_panel_looks_well(page: Page, panel: str) -> None:
    """It has a title, fits every width, and axe has nothing to say."""
    await open_panel(page, panel)
    for width, theme, language in LOOKS:
        await page.set_viewport_size({"width": width, "height": 900})
        await page.locator("#theme").select_option(theme)
        await page.locator("#language").select_option(language)
        await expect(page.locator("html")).to_have_attribute("lang", language)
        await settle(page)
        assert await axe(page) == "", (width, theme, language)
        heading = page.locator("h1")
        await expect(heading).to_have_count(1)
        assert await page.title() == f"{await heading.inner_text()} · byok"
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 900})
        await settle(page)
        await check_width(page)


@pytest.mark.parametrize("panel", read_panels())
async def test_a_panel_asks_only_while_it_is_seen(
    browser: Browser, editor: Editor, panel: str
) -> None:
    """Rarely while it is, not in a hidden tab, and never after it was left."""
    url = editor.daemon.url
    async with visiting(browser, url) as (context, watch):
        await context.clock.install()
        page = await context.new_page()
        await sign_in(page, url)
        await open_panel(page, panel)

        async def count(seconds: int) -> list[str]:
            """Return what is asked in so many seconds of the page's clock."""
            del watch.requests[:]
            for _ in range(seconds):
                await page.clock.run_for(1000)
            await page.wait_for_timeout(50)
            return [line for line in watch.requests if "/ui/api/" in line]

        async with asyncio.timeout(PATIENCE):
            while len(await count(20)) > 10:
                pass  # as long as files are indexed, their number is asked for
        await page.evaluate(_HIDE, True)
        await page.wait_for_timeout(50)
        assert await count(20) == []
        await page.evaluate(_HIDE, False)
        others = {*read_panels()} - {panel}
        for name in [name for name in _QUIET if name in others][:1]:
            await open_panel(page, name)
        assert await count(20) == []
        assert watch.open == {"POST /ui/api/live"}  # which all panels share


async def test_sign_in_looks_well(browser: Browser, editor: Editor) -> None:
    for width, theme, language in LOOKS:
        look: dict[str, Any] = {"width": width, "theme": theme, "language": language}
        async with visiting(browser, editor.daemon.url, **look) as (context, _):
            page = await context.new_page()
            await page.goto(f"{editor.daemon.url}/ui/")
            await page.locator("#code").wait_for()
            assert await axe(page) == "", look
            await check_width(page)


async def test_the_system_chooses_the_colours(browser: Browser, editor: Editor) -> None:
    async with signed_in(browser, editor.daemon.url, theme="auto") as page:
        shown = []
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme)
            await settle(page)
            assert await axe(page) == ""
            shown.append(
                await page.evaluate("getComputedStyle(document.body).backgroundColor")
            )
        assert shown[0] != shown[1]


async def test_an_address_that_means_nothing_shows_the_first_panel(page: Page) -> None:
    for address in ("nowhere", "..%2f..", "%E0%A4%A", "__proto__", "constructor/x"):
        await page.evaluate("(to) => { location.hash = `#/${to}`; }", address)
        await expect(
            page.locator(f"#nav a[href='#/{read_panels()[0]}']")
        ).to_have_attribute("aria-current", "page")
