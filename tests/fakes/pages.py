"""Pages of the dashboard in the system's Chromium, watched for all that may go wrong.

The browser is the system's own, never one that is downloaded."""

import asyncio
import dataclasses
import os
import re
import shutil
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import aiohttp
import pytest
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Locator,
    Page,
    Request,
    Response,
    async_playwright,
    expect,
)

from byok.core.daemon.challenge import derive_owner_token
from byok.core.daemon.token import read_token
from byok.core.platform.paths import find_paths
from tests.fakes.patience import PATIENCE

# Names that a test gives to this machine; no other name is ever looked up.
_NAMES_IT_FINDS = (
    "--host-resolver-rules=MAP *.test 127.0.0.1, MAP * ~NOTFOUND, "
    "EXCLUDE localhost, EXCLUDE 127.0.0.1, EXCLUDE [::1], EXCLUDE ::1"
)
# One process draws all pages: what they may see of each other is not up to processes.
_ONE_PROCESS = ("--renderer-process-limit=1", "--disable-site-isolation-trials")
# The shell draws the same pages for two thirds of the work, as it has no window.
_PROGRAMS = (
    *("chromium-headless-shell", "chromium", "chromium-browser"),
    *("google-chrome", "google-chrome-stable"),
)


def find_browser() -> str:
    """Return the path of the browser; skip the test where there is none.

    Where scripts/setup or the workflow installs one, its absence is a failure.
    """
    paths = [path for path in map(shutil.which, _PROGRAMS) if path]
    if paths:
        return paths[0]
    if sys.platform == "linux" and (os.environ.get("CI") or os.geteuid() == 0):
        pytest.fail("no Chromium: scripts/setup test installs it")
    pytest.skip("no Chromium: install the package chromium")


@asynccontextmanager
async def browsing(*arguments: str) -> AsyncIterator[Browser]:
    """Run the browser; `arguments` are further switches of its command line."""
    path = find_browser()
    alone = ["--no-sandbox"] if sys.platform == "linux" and os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=path,
            args=[
                *(*alone, *_ONE_PROCESS, "--disable-dev-shm-usage", _NAMES_IT_FINDS),
                *arguments,
            ],
        )
        try:
            yield browser
        finally:
            await browser.close()


Language: TypeAlias = Literal["en", "zh"]
Theme: TypeAlias = Literal["auto", "light", "dark"]

STATIC = Path(__file__).parents[2] / "byok" / "server" / "dashboard" / "static"
WIDTH, HEIGHT = 1280, 900
SECONDS = PATIENCE * 1000  # in ms, as Playwright counts
# A report of the policy is an error of the console in Chromium; this says it again, in
# case that a later one does not.
_INIT = """
document.addEventListener("securitypolicyviolation", (event) => console.error(
  `policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
if (location.protocol === "http:" && top === self) {
  localStorage.setItem("byok-language", localStorage.getItem("byok-language") ?? "%s");
  localStorage.setItem("byok-theme", localStorage.getItem("byok-theme") ?? "%s");
}
"""
_IS_AS_BEFORE = """() => {
  const before = self.settling;
  self.settling = document.querySelector("#main").innerHTML;
  return self.settling === before;
}"""
_AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text("utf-8")
_AXE_RUN = """async () => (await axe.run(document, {resultTypes: ["violations"],
  runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]})).violations
  .filter((found) => ["serious", "critical"].includes(found.impact))
  .flatMap((found) => found.nodes.map((node) => [found.id, found.help,
    node.target.join(" "), node.html.slice(0, 200), node.failureSummary].join("\\n  ")))
"""


def read_panels() -> list[str]:
    """Return the names of the panels, as app.js lists them."""
    [listed] = re.findall(r"PANELS = \[(.+?)\]", _read("app.js"), re.DOTALL)
    return re.findall(r'"(\w+)"', listed)


def _read(name: str) -> str:
    return (STATIC / name).read_text("utf-8")


@dataclasses.dataclass
class Watch:
    """What went wrong on a page. `allow` names what a test provokes."""

    origin: str
    wrong: list[str] = dataclasses.field(default_factory=list)
    requests: list[str] = dataclasses.field(
        default_factory=list
    )  # "POST /ui/api/daemon"
    open: set[str] = dataclasses.field(default_factory=set)  # those without an end
    _allowed: list[str] = dataclasses.field(default_factory=list)

    def allow(self, *parts: str) -> None:
        """Let findings pass that contain one of these; "401 " is a status."""
        self._allowed += parts

    def check(self) -> None:
        """Fail if anything went wrong that the test did not allow."""
        findings = [
            finding
            for finding in self.wrong
            if not any(part in finding for part in self._allowed)
        ]
        assert not findings, "\n".join(findings)

    async def take(self, page: Page) -> list[str]:
        """Return what the page has asked for since it was looked at, and forget it."""
        async with page.expect_request("**/health"):  # comes behind all that was asked
            await page.evaluate("() => fetch('/health')")
        lines = [line for line in self.requests if not line.endswith("/health")]
        self.requests.clear()
        self.open.discard("GET /health")
        return lines

    def follow(self, page: Page) -> None:
        """Write down what happens on a page from now on."""
        for event, hear in self._listeners():
            page.on(event, hear)

    @asynccontextmanager
    async def following(self, page: Page) -> AsyncIterator[None]:
        """Write down what happens on a page, and on those it opens, meanwhile."""
        page.context.on("page", self.follow)
        self.follow(page)
        try:
            yield
        finally:
            page.context.remove_listener("page", self.follow)
            for event, hear in self._listeners():
                page.remove_listener(event, hear)

    def _listeners(self) -> list[tuple[Any, Callable[[Any], None]]]:
        return [
            ("console", self._hear),
            ("pageerror", self._see_error),
            ("request", self._see_request),
            ("requestfinished", self._see_end),
            ("requestfailed", self._see_failure),
            ("response", self._see_response),
        ]

    def _see_error(self, error: Error) -> None:
        self.wrong.append(f"error: {error}")

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        if message.text.startswith("Failed to load resource"):
            return  # said by the response or the failed request already
        where = message.location.get("url", "")
        self.wrong.append(f"console {message.type}: {message.text} ({where})")

    def _see_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        self.requests.append(_line(request))
        self.open.add(_line(request))
        if parts.scheme == "data":
            return
        if f"{parts.scheme}://{parts.netloc}" != self.origin:
            self.wrong.append(f"request to another host: {request.url}")

    def _see_end(self, request: Request) -> None:
        self.open.discard(_line(request))

    def _see_failure(self, request: Request) -> None:
        self._see_end(request)
        # A panel that is left aborts what it asked for.
        if request.failure != "net::ERR_ABORTED":
            self.wrong.append(f"failed: {request.url} {request.failure}")

    def _see_response(self, response: Response) -> None:
        if response.status >= 400:
            self.wrong.append(f"{response.status} {urlsplit(response.url).path}")


def _line(request: Request) -> str:
    return f"{request.method} {urlsplit(request.url).path}"


async def make_code(url: str) -> str:
    """Return a code for one sign-in, as `byok dashboard` gets it."""
    async with aiohttp.ClientSession() as http:
        challenge = {"nonce": "0123456789abcdef"}
        async with http.post(f"{url}/health/challenge", json=challenge) as answer:
            instance = (await answer.json())["instance"]
        secret = read_token(find_paths().owner_secret)
        token = derive_owner_token(secret, urlsplit(url).port or 0, instance)
        headers = {"Authorization": f"Bearer {token}"}
        path = f"{url}/byok/dashboard-code"
        async with http.post(path, json={}, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            return str((await answer.json())["code"])


async def type_code(page: Page, code: str) -> None:
    """Enter a code in the form that asks for one."""
    await page.locator("#code").fill(code)
    await page.locator("#code").press("Enter")


@asynccontextmanager
async def profile_of(
    browser: Browser,
    *,
    width: int = WIDTH,
    height: int = HEIGHT,
    theme: Theme = "light",
    language: Language = "en",
) -> AsyncIterator[BrowserContext]:
    """Give a browser window with a new, empty profile."""
    context = await browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="light",
        locale="en-US",
        timezone_id=f"Etc/GMT{time.timezone // 3600:+d}",
        reduced_motion="reduce",
    )
    context.set_default_timeout(SECONDS)
    expect.set_options(timeout=SECONDS)
    await context.add_init_script(_INIT % (language, theme))
    try:
        yield context
    finally:
        await context.close()


@asynccontextmanager
async def visiting(
    browser: Browser, url: str, *, check: bool = True, **options: Any
) -> AsyncIterator[tuple[BrowserContext, Watch]]:
    """Give a window as `profile_of` does, whose pages are watched.

    `url` is the daemon's address without a path. With `check`, the end fails if
    anything went wrong that `Watch.allow` does not name.
    """
    watch = Watch(url)
    async with profile_of(browser, **options) as context:
        context.on("page", watch.follow)
        yield context, watch
    if check:
        watch.check()


@asynccontextmanager
async def signed_in(browser: Browser, url: str, **options: Any) -> AsyncIterator[Page]:
    """Give a page that is signed in by a code; `options` are those of `visiting`."""
    async with visiting(browser, url, **options) as (context, _):
        page = await context.new_page()
        await sign_in(page, url)
        yield page


async def sign_in(page: Page, url: str) -> None:
    """Open the page, enter a code, and wait until it shows the first panel."""
    await page.goto(f"{url}/ui/")
    await type_code(page, await make_code(url))
    await expect(page.locator("#nav a[aria-current]")).to_be_visible()


async def open_panel(page: Page, address: str) -> None:
    """Go to a panel by the page's navigation; `address` may go on as "live/3"."""
    name = address.partition("/")[0]
    if address == name:
        link = page.locator(f'#nav a[href="#/{name}"]')
        if not await link.is_visible():  # on a phone most are behind "More"
            await page.locator("#more").click()
        await link.click()
    else:
        await page.evaluate("(address) => { location.hash = `#/${address}`; }", address)
    await expect(page.locator(f".panel.{name}")).to_be_attached()
    await settle(page)


async def set_look(page: Page, name: str, value: str) -> None:
    """Choose the `theme` or the `language`; on a narrow page both are behind "More"."""
    select = page.locator(f"#{name}")
    if not await select.is_visible():
        await page.locator("#more").click()
    await select.select_option(value)


async def settle(page: Page, quiet: float = 0.15) -> None:
    """Wait until a panel has shown something, and nothing changes for a moment."""
    await expect(page.locator(".panel > *").first).to_be_attached()
    await page.evaluate(_IS_AS_BEFORE)
    for _ in range(12):  # some never rest
        await asyncio.sleep(quiet)
        if await page.evaluate(_IS_AS_BEFORE):
            return


async def axe(page: Page) -> str:
    """Return what axe finds serious or critical, as text; "" is nothing."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(_AXE)
    return "\n".join(await page.evaluate(_AXE_RUN))


def field(page: Page, name: str) -> Locator:
    """Return the row of a setting."""
    return page.locator(f'[data-name="{name}"]')


def control(page: Page, name: str) -> Locator:
    """Return what a setting is entered by."""
    return field(page, name).locator("input, select, textarea").first


async def unfold(page: Page) -> None:
    """Show all settings, those of upstreams too."""
    opened = "document.querySelectorAll('main details').forEach((d) => d.open = true)"
    await page.evaluate(opened)


def save_button(page: Page) -> Locator:
    return page.get_by_role("button", name="Save", exact=True)


async def save(page: Page) -> None:
    """Save, and wait until the settings are in force."""
    async with page.expect_response("**/ui/api/keys"):  # which it asks for anew
        await save_button(page).click()
    await expect(page.locator(".changes")).to_be_hidden()
    await expect(page.locator("#status")).to_have_text("Saved and in effect.")
