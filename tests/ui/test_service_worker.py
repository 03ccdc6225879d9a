"""What a program left in the browser that had byok's address before."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from playwright.async_api import Browser, expect

from tests.fakes.daemon import running
from tests.fakes.pages import make_code, type_code, visiting

_WORKER = """
addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  const headers = {"Content-Type": "text/html"};
  if (%s) event.respondWith(new Response("<title>a fake</title>", {headers}));
});
"""
_REGISTER = """async () => {
  await navigator.serviceWorker.register("/worker.js");
  await navigator.serviceWorker.ready;
}"""
_COUNT = "async () => (await navigator.serviceWorker.getRegistrations()).length"


@asynccontextmanager
async def squatting(fakes: str) -> AsyncIterator[int]:
    """Serve a page and a worker on a port that is byok's later."""
    app = web.Application()

    async def worker(request: web.Request) -> web.Response:
        return web.Response(text=_WORKER % fakes, content_type="text/javascript")

    async def page(request: web.Request) -> web.Response:
        return web.Response(text="<!doctype html>", content_type="text/html")

    app.router.add_get("/worker.js", worker)
    app.router.add_get("/ui/", page)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    "fakes",
    ["false", 'event.request.mode === "navigate"'],
    ids=["it watches", "it answers with a page"],
)
@pytest.mark.case("B143")
async def test_a_service_worker_of_another_program_is_ended(
    browser: Browser, fakes: str
) -> None:
    async with visiting(browser, "", check=False) as (context, _):
        page = await context.new_page()
        async with squatting(fakes) as port:
            url = f"http://127.0.0.1:{port}"
            await page.goto(f"{url}/ui/")
            await page.evaluate(_REGISTER)
        await page.goto("about:blank")
        async with running({"server": {"port": port}}, upstream="demo"):
            await page.goto(f"{url}/ui/")
            await type_code(page, await make_code(url))
            await expect(page.locator("#sign-out")).to_be_visible()
            assert await page.evaluate(_COUNT) == 0
