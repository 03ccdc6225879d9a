"""The panel of models: what each can do, and what a probe would cost and finds."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.fakes.daemon import settings_for
from tests.fakes.pages import axe, open_panel
from tests.fakes.upstream import FakeUpstream


@pytest.fixture
def daemon_settings(fake: FakeUpstream) -> dict[str, Any]:
    fake.models = ["gpt-5.1", "nomic-embed-text"]  # of a gateway, and of this machine
    return settings_for(fake.url, model="gpt-5.1")


async def test_facts_have_sources_and_a_probe_runs_when_it_is_agreed_to(
    page: Page, fake: FakeUpstream
) -> None:
    await open_panel(page, "models")
    rows = page.locator("tbody tr")
    await expect(rows).to_have_count(2)
    price = rows.locator("[data-label^='$']")
    await expect(price).to_have_text(["unknown price", "no cost"])
    await page.get_by_label("Abilities").select_option("tools")
    await expect(rows).to_have_count(1)
    await rows.locator("td.lead button").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.locator("tbody")).to_contain_text("family")
    assert await axe(page) == ""
    asked = len(fake.requests)
    await dialog.get_by_role("button", name="Probe").click()
    agree = dialog.get_by_role("button", name="Probe")
    await expect(agree).to_be_enabled()
    assert len(fake.requests) == asked
    await agree.click()
    await expect(dialog.locator("tbody tr").first).to_be_visible()
    assert len(fake.requests) > asked
    await dialog.get_by_role("button", name="Close").first.click()
    await expect(rows.locator("td").nth(5)).not_to_have_text("–")
