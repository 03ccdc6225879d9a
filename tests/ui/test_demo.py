"""What byok demo shows is said to be samples."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from byok.cli.demo import UPSTREAM
from tests.fakes.pages import axe
from tests.fakes.upstream import FakeUpstream


@pytest.fixture
def daemon_settings(fake: FakeUpstream) -> dict[str, Any]:
    """The upstream of the demo."""
    return {"upstreams": {UPSTREAM: {"base_url": fake.url, "model": "sample"}}}


async def test_the_page_of_the_demo_says_what_it_shows(page: Page) -> None:
    health = page.locator(".health")
    await expect(health).to_contain_text("made up")
    await page.locator("#language").select_option("zh")
    await expect(health).to_contain_text("byok demo")
    assert await axe(page) == ""
