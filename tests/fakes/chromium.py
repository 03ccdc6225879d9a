"""The browser of the tests: the system's own, never one that is downloaded."""

import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, async_playwright

# Names that a test gives to this machine; no other name is ever looked up.
_NAMES_IT_FINDS = (
    "--host-resolver-rules=MAP *.test 127.0.0.1, MAP * ~NOTFOUND, "
    "EXCLUDE localhost, EXCLUDE 127.0.0.1, EXCLUDE [::1], EXCLUDE ::1"
)
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser() -> str:
    """Return the path of the browser; skip the test where there is none.

    Where scripts/setup or the workflow installs one, its absence is a failure.
    """
    found = [path for path in map(shutil.which, _PROGRAMS) if path]
    if found:
        return found[0]
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
            args=[*alone, "--disable-dev-shm-usage", _NAMES_IT_FINDS, *arguments],
        )
        try:
            yield browser
        finally:
            await browser.close()
