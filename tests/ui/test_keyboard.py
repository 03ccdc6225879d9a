"""The dashboard without a mouse: Tab, Enter and letters."""

from collections.abc import AsyncIterator
from typing import Any

from playwright.async_api import Browser, Page, expect

from tests.fakes.daemon import Editor
from tests.fakes.pages import make_code, read_panels, settle, visiting

# What has the focus: where it is, and whether a user sees that.
_FOCUSED = """() => {
  const element = document.activeElement;
  const style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  element.dataset.reached = "";
  return {
    tag: element.tagName.toLowerCase(), id: element.id,
    href: element.getAttribute("href") ?? "", html: element.outerHTML.slice(0, 200),
    visible: (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0)
      || style.boxShadow !== "none",
    inside: box.width > 0 && box.height > 0 && box.left >= -1 && box.top >= -1
      && box.left < innerWidth && box.top < innerHeight,
  };
}"""
# Controls of the panel that Tab has not reached; of a group of radio buttons it reaches
# one.
_MISSED = """() => [...document.querySelectorAll(
  "#main :is(a[href], button, input, select, textarea, summary, [tabindex='0'])")]
  .filter((found) => found.checkVisibility({visibilityProperty: true})
    && !found.disabled && !("reached" in found.dataset) && found.tabIndex >= 0
    && found.type !== "radio")
  .map((found) => found.outerHTML.slice(0, 200))"""
_MOST = 250


async def tab_stops(page: Page) -> AsyncIterator[dict[str, Any]]:
    """Press Tab until the focus leaves the page; check that each stop is seen."""
    for _ in range(_MOST):
        await page.keyboard.press("Tab")
        stop = await page.evaluate(_FOCUSED)
        if stop["tag"] == "body":
            return
        assert stop["visible"], f"nobody sees the focus: {stop['html']}"
        assert stop["inside"], f"the focus is outside the window: {stop['html']}"
        yield stop
    raise AssertionError("Tab does not come to an end")


async def tab_to(page: Page, **expected: str) -> None:
    """Press Tab until something has the focus, around the page at most once."""
    for _ in range(2):
        async for stop in tab_stops(page):
            if all(stop[name] == value for name, value in expected.items()):
                return
    raise AssertionError(f"Tab does not reach {expected}")


async def focus(page: Page) -> dict[str, Any]:
    focused: dict[str, Any] = await page.evaluate(_FOCUSED)
    return focused


async def test_every_control_is_reached_from_the_sign_in_to_its_end(
    browser: Browser, editor: Editor
) -> None:
    url = editor.daemon.url
    async with visiting(browser, url) as (context, watch):
        page = await context.new_page()
        await page.goto(f"{url}/ui/")
        await page.locator("#code").wait_for()
        await tab_to(page, id="code")
        await page.keyboard.type("wrong")
        watch.allow("401 /ui/api/sign-in")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_be_visible()
        assert (await focus(page))["tag"] == "h1"
        await tab_to(page, id="code")
        await page.keyboard.type(await make_code(url))
        await page.keyboard.press("Enter")
        await expect(page.locator("#sign-out")).to_be_visible()
        assert (await focus(page))["tag"] == "h1"
        for panel in read_panels():
            await tab_to(page, href=f"#/{panel}")
            await page.keyboard.press("Enter")
            await expect(page.locator(f".panel.{panel}")).to_be_attached()
            await settle(page)
            assert (await focus(page))["tag"] == "h1"
            assert (await focus(page))["visible"]
            async for _ in tab_stops(page):
                pass
            assert await page.evaluate(_MISSED) == [], panel
        await page.locator("#language").focus()
        await page.keyboard.press("ArrowDown")
        await expect(page.locator("html")).to_have_attribute("lang", "zh")
        assert (await focus(page))["id"] == "language"
        address = page.url
        await page.reload()
        await settle(page)
        await page.keyboard.press("Tab")
        assert (await focus(page))["id"] == "skip"
        assert (await focus(page))["inside"]
        await page.keyboard.press("Enter")
        assert (await focus(page))["id"] == "main"
        assert page.url == address
        await tab_to(page, id="sign-out")
        await page.keyboard.press("Enter")
        await expect(page.locator("#code")).to_be_visible()
        assert (await focus(page))["tag"] == "h1"
