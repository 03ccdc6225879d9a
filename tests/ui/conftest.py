"""The dashboard in a browser: one browser a worker, a new profile and daemon a test."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from byok.core.platform.paths import find_paths
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.furnished import ENVIRON, UPSTREAMS, furnish, make_bakery
from tests.fakes.pages import HEIGHT, WIDTH, Watch, browsing, profile_of, sign_in
from tests.fakes.upstream import FakeUpstream, Script, delta


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all tests in the loop of the browser, which lives as long as the worker."""
    for item in items:
        if item.nodeid.startswith("tests/ui/") and item.get_closest_marker("asyncio"):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """The system's Chromium."""
    async with browsing() as started:
        yield started


@pytest_asyncio.fixture(loop_scope="session")
async def fake() -> AsyncIterator[FakeUpstream]:
    """An upstream that plays a script, in the loop of these tests."""
    async with FakeUpstream() as upstream:
        yield upstream


@pytest.fixture
def daemon_settings(fake: FakeUpstream) -> dict[str, Any]:
    """The daemon's settings; a module or a test may give others."""
    return settings_for(fake.url, model="fake-model")


@pytest.fixture
def clock() -> Callable[[], float]:
    """What tells the daemon the time; a module may give another."""
    return time.time


@pytest_asyncio.fixture(loop_scope="session")
async def editor(
    clean_environment: Path, daemon_settings: dict[str, Any], clock: Callable[[], float]
) -> AsyncIterator[Editor]:
    """A daemon in the test, and a client that asks it."""
    async with running(daemon_settings, clock=clock) as started:
        yield started


@pytest_asyncio.fixture(loop_scope="session")
async def furnished(tmp_path: Path, fake: FakeUpstream) -> AsyncIterator[Editor]:
    """A daemon that has a history, a workspace, and requests that are answered now."""
    bakery = make_bakery(tmp_path / "bakery")
    furnish(find_paths(), dict.fromkeys(UPSTREAMS, fake.url), time.time(), bakery)
    fake.play(Script([delta(content="The oven is")], end="hang"))
    async with running(environ=ENVIRON) as started:
        asking = [asyncio.ensure_future(started.chat(f"Question {n}")) for n in (1, 2)]
        while fake.open < len(asking):
            await asyncio.sleep(0.01)
        yield started
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def tab(browser: Browser) -> AsyncIterator[Page]:
    """A page for many tests: what it keeps belongs to one daemon's port."""
    async with profile_of(browser) as context:
        yield await context.new_page()


@pytest_asyncio.fixture(loop_scope="session")
async def window(tab: Page, editor: Editor) -> AsyncIterator[tuple[Page, Watch]]:
    """A page that is signed in, and what is written down of it.

    At the end the test fails if the console had an error or a warning, if the page's
    policy was broken, if a request failed or went to another host, or if an answer was
    an error that the test did not allow.
    """
    watch = Watch(editor.daemon.url)
    async with watch.following(tab):
        await sign_in(tab, editor.daemon.url)
        yield tab, watch
        await tab.unroute_all(behavior="wait")
    await tab.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    # A later daemon may have the port of this one.
    await tab.evaluate("sessionStorage.clear(); localStorage.clear()")
    await tab.goto("about:blank")
    for other in tab.context.pages[1:]:
        await other.close()
    watch.check()


@pytest.fixture
def page(window: tuple[Page, Watch]) -> Page:
    """A page that is signed in; see `window` for what fails the test at its end."""
    return window[0]


@pytest.fixture
def watch(window: tuple[Page, Watch]) -> Watch:
    """What is written down of `page`; a test may `allow` what it provokes."""
    return window[1]
