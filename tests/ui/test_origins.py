"""Pages of other origins cannot show, reach or ask the dashboard."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import Browser, Page

from tests.fakes.daemon import Editor
from tests.fakes.pages import Watch, visiting

HOSTS = ("127.0.0.1", "localhost", "evil.test")
_ASK = """async ([url, token]) => {
  const ask = (path, init) => fetch(url + path, init).then(
    async (answer) => `${answer.type} ${answer.status} ${(await answer.text()).length}`,
    (error) => error.name);
  const json = "application/json";
  const headers = {Authorization: `Bearer ${token}`, "Content-Type": json};
  return [await ask("/ui/"), await ask("/ui/", {mode: "no-cors"}),
    await ask("/ui/api/daemon", {method: "POST", body: "{}", headers}),
    await ask("/ui/api/daemon", {method: "POST", body: "{}", mode: "no-cors"}),
    await ask("/ui/api/sign-in", {method: "POST", body: "{}", mode: "no-cors"})];
}"""
_LOAD = """async ([url]) => {
  const load = (tag, attributes) => new Promise((resolve) => {
    const element = Object.assign(document.createElement(tag), attributes);
    element.onload = () => resolve("loaded");
    element.onerror = () => resolve("refused");
    document.body.append(element);
  });
  return [await load("img", {src: url + "/ui/icon.svg"}),
    await load("script", {src: url + "/ui/texts.js", type: "module"}),
    await load("link", {rel: "stylesheet", href: url + "/ui/style.css"}),
    await import(url + "/ui/texts.js").then(() => "loaded", () => "refused")];
}"""

_FRAME = """(url) => new Promise((resolve) => {
  const frame = Object.assign(document.createElement("iframe"), {src: url});
  frame.onload = resolve;
  document.body.append(frame);
})"""


@pytest_asyncio.fixture(loop_scope="session")
async def foreign_port() -> AsyncIterator[int]:
    """A server of another origin, whose page is empty."""
    app = web.Application()

    async def page(request: web.Request) -> web.Response:
        return web.Response(text="<!doctype html><body>", content_type="text/html")

    app.router.add_get("/", page)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield runner.addresses[0][1]
    await runner.cleanup()


@pytest_asyncio.fixture(loop_scope="session")
async def foreign(
    browser: Browser, editor: Editor, foreign_port: int
) -> AsyncIterator[Page]:
    """A page of another origin."""
    async with visiting(browser, editor.daemon.url, check=False) as (context, _):
        page = await context.new_page()
        await page.goto(f"http://evil.test:{foreign_port}/")
        yield page


@pytest.mark.case("B81")
async def test_no_foreign_page_asks_loads_frames_or_holds_anything(
    foreign: Page, foreign_port: int, editor: Editor, page: Page
) -> None:
    token = await page.evaluate("sessionStorage.getItem('byok-session')")
    url = editor.daemon.url
    for host in HOSTS:
        await foreign.goto(f"http://{host}:{foreign_port}/")
        assert await foreign.evaluate(_ASK, [url, token]) == ["TypeError"] * 5, host
        assert await foreign.evaluate(_LOAD, [url]) == ["refused"] * 4, host
        await foreign.evaluate(_FRAME, _start(editor))
        frame = foreign.frames[1]
        assert await frame.evaluate("location.href") == "chrome-error://chromewebdata/"
        assert await frame.locator("#main").count() == 0
        async with foreign.expect_popup() as opening:
            await foreign.evaluate(
                "(url) => { self.held = open(url); }", _start(editor)
            )
        popup = await opening.value
        await popup.wait_for_load_state()
        assert await popup.evaluate("window.opener") is None
        assert await foreign.evaluate("held.closed")
        assert await popup.locator("#main").count() == 0


async def test_a_page_that_it_was_opened_from_by_hand_holds_nothing(
    page: Page, watch: Watch, foreign_port: int, editor: Editor
) -> None:
    """Its own policy holds too, not only the check of who navigates."""
    other = await page.context.new_page()
    watch.allow("request to another host")
    await other.goto(f"http://127.0.0.1:{foreign_port}/")
    async with other.expect_popup() as opening:
        await other.evaluate("() => { self.held = open('about:blank'); }")
    popup = await opening.value
    await popup.goto(_start(editor))  # as if the user had typed it
    await popup.locator("#nav a[aria-current]").wait_for()
    assert await popup.evaluate("window.opener") is None
    assert await other.evaluate("held.closed")


async def test_a_name_that_was_rebound_gets_nothing(
    browser: Browser, editor: Editor
) -> None:
    url = f"http://rebound.test:{editor.daemon.port}"
    async with visiting(browser, url, check=False) as (context, _):
        page = await context.new_page()
        for path in ("/ui/", "/ui/api/daemon", "/ui/app.js"):
            answer = await page.goto(f"{url}{path}")
            assert answer is not None
            assert (answer.status, await page.locator("script").count()) == (421, 0)
            statuses = await page.evaluate(
                """async (path) => [(await fetch(path)).status,
                  (await fetch(path, {method: "POST", body: "{}"})).status]""",
                path,
            )
            assert statuses == [421, 421]


def _start(editor: Editor) -> str:
    return f"{editor.daemon.url}/ui/"
