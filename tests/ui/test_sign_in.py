"""Signing in and out, as people do it, and what must not work."""

import asyncio
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from playwright.async_api import Browser, Page, Route, expect

from tests.fakes.daemon import Editor, running
from tests.fakes.dashboard import Page as Dashboard
from tests.fakes.pages import (
    Watch,
    axe,
    make_code,
    open_panel,
    read_panels,
    set_look,
    settle,
    sign_in,
    type_code,
    visiting,
)


async def addresses(page: Page) -> list[str]:
    """Return all that the tab's history holds."""
    session = await page.context.new_cdp_session(page)
    history: dict[str, Any] = await session.send("Page.getNavigationHistory")
    return [entry["url"] for entry in history["entries"]]


async def is_in(page: Page) -> None:
    await expect(page.locator("#nav a[aria-current]")).to_be_visible()
    await expect(page.locator("#code")).to_have_count(0)


async def is_out(page: Page, words: str = "") -> None:
    await expect(page.locator("#code")).to_be_visible()
    await expect(page.locator("#nav a")).to_have_count(0)
    if words:
        await expect(page.get_by_role("alert")).to_contain_text(words)


async def test_a_wrong_code_is_refused_in_words(
    browser: Browser, editor: Editor
) -> None:
    url = editor.daemon.url
    async with visiting(browser, url) as (context, watch):
        watch.allow("401 /ui/api/sign-in")
        page = await context.new_page()
        code = await make_code(url)
        await page.goto(f"{url}/ui/#code={code}")  # an address is no key
        await is_out(page)
        assert await page.get_by_role("alert").count() == 0
        for wrong in ("wrong", "<img src=x onerror=alert(1)>"):
            await type_code(page, wrong)
            await is_out(page, "dashboard_code")
        code = await make_code(url)
        await type_code(page, code)
        await is_in(page)
        assert [address for address in await addresses(page) if code in address] == []


async def test_a_session_that_is_ended_elsewhere_asks_for_a_code(
    browser: Browser, editor: Editor
) -> None:
    url = editor.daemon.url
    async with visiting(browser, url) as (context, watch):
        watch.allow("401 /ui/api/")
        page = await context.new_page()
        await sign_in(page, url)
        last = read_panels()[-1]
        await open_panel(page, last)
        token = await page.evaluate("sessionStorage.getItem('byok-session')")
        await Dashboard(editor, token).call("sign-out")
        await is_out(page, "The session has ended.")  # without asking for anything
        await type_code(page, await make_code(url))
        await is_in(page)
        assert page.url.endswith(f"#/{last}")  # where the user was


async def test_a_change_long_after_the_sign_in_asks_for_a_new_code(
    page: Page, editor: Editor, watch: Watch
) -> None:
    watch.allow("403 /ui/api/", "401 /ui/api/confirm", "400 /ui/api/index-add")
    refusal = {"error": {"code": "dashboard_confirm", "message": "No.", "hint": ""}}
    left = [2]

    async def refuse(route: Route) -> None:
        left[0] -= 1
        if left[0] < 0:
            await route.continue_()
        else:
            await route.fulfill(status=403, json=refusal)

    async def change() -> str:
        return str(
            await page.evaluate(
                """() => import("/ui/api.js").then(({ call }) => call("index-add",
                  { root: "/none" }).catch((error) => error.code))"""
            )
        )

    await page.route("**/ui/api/index-add", refuse)
    dialog = page.get_by_role("dialog")
    changing = asyncio.ensure_future(change())
    await expect(dialog).to_be_visible()
    await page.keyboard.press("Escape")
    assert await changing == "dashboard_confirm"
    await expect(dialog).to_have_count(0)
    changing = asyncio.ensure_future(change())
    await type_code(page, "wrong")
    await expect(dialog.get_by_role("alert")).to_be_visible()
    assert not await axe(page)
    await type_code(page, await make_code(editor.daemon.url))
    assert await changing == "config"  # asked again, it is the answer for no folder
    await expect(dialog).to_have_count(0)


async def test_tabs_share_a_session_and_the_browser_keeps_none(
    page: Page, editor: Editor, watch: Watch
) -> None:
    """No cookie, which other ports would get, and nothing for the next session."""
    await page.reload()
    await is_in(page)
    other = await page.context.new_page()
    await other.goto(page.url)
    await is_in(other)
    assert await page.context.cookies() == []
    stored = await page.evaluate("Object.keys(localStorage)")
    assert sorted(stored) == ["byok-language", "byok-theme"]
    databases = await page.evaluate("indexedDB.databases()")
    assert (databases, await page.evaluate("caches.keys()")) == ([], [])
    token = await page.evaluate("sessionStorage.getItem('byok-session')")
    assert len(token) >= 43
    await set_look(other, "language", "zh")  # each goes on in its own language
    await open_panel(page, "live")
    langs = [await tab.locator("html").get_attribute("lang") for tab in (page, other)]
    assert langs == ["en", "zh"]
    await page.bring_to_front()
    await page.locator("#sign-out").click()
    await is_out(page)
    await is_out(other)
    assert await page.get_by_role("alert").count() == 0
    assert await page.evaluate("sessionStorage.length") == 0
    await page.go_back()
    await page.go_forward()
    await is_out(page)
    assert await Dashboard(editor, token).refused("daemon") == (
        401,
        "dashboard_session",
    )


@pytest.mark.case("B168")
async def test_a_session_outlives_the_daemon_and_is_told_to_nobody_meanwhile(
    browser: Browser,
) -> None:
    async with running(upstream="demo") as editor:
        url, again = editor.daemon.url, {"server": {"port": editor.daemon.port}}
    heard = list[str]()

    async def listen(request: web.Request) -> web.Response:
        heard.append(request.path)
        assert "Authorization" not in request.headers
        return web.json_response({"proof": "00" * 32})

    async with visiting(browser, url) as (context, watch):
        page = await context.new_page()
        async with running(again, upstream="demo"):
            await sign_in(page, url)
            await settle(page)
        watch.allow("net::ERR_")
        await page.locator("#nav a").first.click()
        silent = page.get_by_text("byok does not answer").first
        await expect(silent).to_be_visible()
        stranger = web.Application()
        stranger.router.add_route("*", "/{path:.*}", listen)
        async with TestServer(stranger, host="127.0.0.1", port=editor.daemon.port):
            await page.locator("#nav a").nth(1).click()
            await page.locator("#nav a").first.click()
            other = page.get_by_text("Another program answers")
            await expect(other.first).to_be_visible()
            await page.locator("#nav a").last.click()
            await expect(other).to_have_count(1)
        # Neither the token nor a script for the page passes.
        assert {path for path in heard if "icon" not in path} == {"/ui/api/prove"}
        async with running(again, upstream="demo"):  # the page looks for it by itself
            await expect(page.locator("#find-setting")).to_be_visible()
            await expect(other).to_have_count(0)
            await is_in(page)
