"""Signing in and out, as people do it, and what must not work."""

import asyncio
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect

from tests.fakes.daemon import Editor, running
from tests.fakes.daemon_thread import daemon_thread
from tests.fakes.pages import (
    Watch,
    make_code,
    open_panel,
    read_panels,
    settle,
    sign_in,
    visiting,
)
from tests.fakes.program import run_byok


async def addresses(page: Page) -> list[str]:
    """Return all that the tab's history holds."""
    session = await page.context.new_cdp_session(page)
    history: dict[str, Any] = await session.send("Page.getNavigationHistory")
    return [entry["url"] for entry in history["entries"]]


async def type_code(page: Page, code: str) -> None:
    """Give a code or a link to the form."""
    await page.locator("#code").fill(code)
    await page.locator("#code").press("Enter")


async def is_in(page: Page) -> None:
    await expect(page.locator("#nav a[aria-current]")).to_be_visible()
    await expect(page.locator("#code")).to_have_count(0)


async def is_out(page: Page, words: str = "") -> None:
    await expect(page.locator("#code")).to_be_visible()
    await expect(page.locator("#nav a")).to_have_count(0)
    if words:
        await expect(page.get_by_role("alert")).to_contain_text(words)


async def test_the_link_of_the_command_signs_in(browser: Browser) -> None:
    with daemon_thread() as daemon:
        done = await asyncio.to_thread(run_byok, "dashboard", "--link")
        link = done.stdout.strip()
        assert link.startswith(f"{daemon.url}/ui/#code="), done
        async with visiting(browser, daemon.url) as (context, _):
            page = await context.new_page()
            await page.goto(link)
            await is_in(page)
            assert page.url == f"{daemon.url}/ui/"
            assert [url for url in await addresses(page) if "code" in url] == []


@pytest.mark.parametrize("form", ["{code}", " {code}\n", "{url}/ui/#code={code}"])
async def test_a_code_that_is_typed_signs_in(
    browser: Browser, editor: Editor, form: str
) -> None:
    url = editor.daemon.url
    async with visiting(browser, url) as (context, _):
        page = await context.new_page()
        await page.goto(f"{url}/ui/")
        await is_out(page)
        assert await page.get_by_role("alert").count() == 0
        await type_code(page, form.format(code=await make_code(url), url=url))
        await is_in(page)


async def test_a_link_in_a_page_that_is_open_signs_in(
    browser: Browser, editor: Editor
) -> None:
    url = editor.daemon.url
    async with visiting(browser, url) as (context, _):
        page = await context.new_page()
        await page.goto(f"{url}/ui/")
        await is_out(page)
        await page.goto(f"{url}/ui/#code={await make_code(url)}")
        await is_in(page)
        assert [address for address in await addresses(page) if "code" in address] == []


async def test_a_wrong_code_is_refused_in_words(
    browser: Browser, editor: Editor
) -> None:
    url = editor.daemon.url
    async with visiting(browser, url) as (context, watch):
        watch.allow("401 /ui/api/sign-in")
        page = await context.new_page()
        await page.goto(f"{url}/ui/#code=wrong")
        await is_out(page, "wrong or too old")
        assert page.url == f"{url}/ui/"
        await type_code(page, "<img src=x onerror=alert(1)>")
        await is_out(page, "wrong or too old")
        await type_code(page, await make_code(url))
        await is_in(page)


async def test_a_second_use_of_a_code_ends_the_session(
    browser: Browser, editor: Editor
) -> None:
    url = editor.daemon.url
    code = await make_code(url)
    async with visiting(browser, url) as (context, watch):
        watch.allow("401 /ui/api/")
        page = await context.new_page()
        await page.goto(f"{url}/ui/#code={code}")
        await is_in(page)
        last = read_panels()[-1]
        await open_panel(page, last)
        async with visiting(browser, url, check=False) as (other, _):
            thief = await other.new_page()
            await thief.goto(f"{url}/ui/#code={code}")
            await is_out(thief, "was used before")
        await is_out(page, "The session has ended.")  # without asking for anything
        await type_code(page, await make_code(url))
        await is_in(page)
        assert page.url.endswith(f"#/{last}")  # where the user was


async def test_a_reload_keeps_the_session(page: Page) -> None:
    await page.reload()
    await is_in(page)


async def test_a_new_tab_has_no_session(page: Page, watch: Watch) -> None:
    other = await page.context.new_page()
    await other.goto(page.url)
    await is_out(other)
    await page.bring_to_front()
    await page.reload()
    await is_in(page)


async def test_two_tabs_have_a_session_each(page: Page, editor: Editor) -> None:
    other = await page.context.new_page()
    await sign_in(other, editor.daemon.url)
    await page.locator("#sign-out").click()
    await is_out(page)
    await open_panel(other, "overview")
    await other.reload()
    await is_in(other)


async def test_signing_out_ends_the_session(page: Page, watch: Watch) -> None:
    token = await page.evaluate("sessionStorage.getItem('byok-session')")
    assert len(token) >= 43
    await page.locator("#sign-out").click()
    await is_out(page)
    assert await page.get_by_role("alert").count() == 0
    assert await page.evaluate("sessionStorage.length") == 0
    await page.go_back()
    await page.go_forward()
    await is_out(page)
    watch.allow("401 /ui/api/daemon")
    status = await page.evaluate(
        """async (token) => (await fetch("/ui/api/daemon", {method: "POST", body: "{}",
        headers: {"Content-Type": "application/json", Authorization: `Bearer ${token}`}
        })).status""",
        token,
    )
    assert status == 401


async def test_the_browser_stores_nothing_else(page: Page, editor: Editor) -> None:
    """No cookie, which other ports would get, and nothing for the next session."""
    context: BrowserContext = page.context
    assert await context.cookies() == []
    kept = await page.evaluate("Object.keys(localStorage)")
    assert sorted(kept) == ["byok-language", "byok-theme"]
    databases = await page.evaluate("indexedDB.databases()")
    assert (databases, await page.evaluate("caches.keys()")) == ([], [])


async def test_a_daemon_that_is_started_anew_asks_to_sign_in(browser: Browser) -> None:
    """Its sessions are kept nowhere; the page says what is wrong, then what to do."""
    async with running(upstream="demo") as editor:
        url, again = editor.daemon.url, {"server": {"port": editor.daemon.port}}
    async with visiting(browser, url) as (context, watch):
        page = await context.new_page()
        async with running(again, upstream="demo"):
            await sign_in(page, url)
            await settle(page)
        watch.allow("net::ERR_", "401 /ui/api/")
        await page.locator("#nav a").first.click()
        silent = page.get_by_text("byok does not answer").first
        await expect(silent).to_be_visible()
        async with running(again, upstream="demo"):  # the page looks for it by itself
            await is_out(page, "The session has ended.")
            await type_code(page, await make_code(url))
            await is_in(page)
