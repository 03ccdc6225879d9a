"""The panel of models: what each can do, and what a probe would cost and finds."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.fakes.daemon import settings_for
from tests.fakes.pages import axe, open_panel
from tests.fakes.upstream import FakeUpstream

# Of the same price in, so that the one out decides.
FACTS = {
    "dear": {"price_input": 1.0, "price_output": 5.0, "max_output": 1000},
    "cheap": {"price_input": 1.0, "price_output": 2.0, "max_output": 900_000},
}


@pytest.fixture
def daemon_settings(fake: FakeUpstream) -> dict[str, Any]:
    # Of a gateway, and of this machine.
    fake.models = ["gpt-5.1", "nomic-embed-text", *FACTS]
    facts = {**FACTS, "nomic-embed-text": {"chats": False}}
    return settings_for(fake.url, model="gpt-5.1", facts=facts)


async def test_facts_have_sources_and_a_probe_runs_when_it_is_agreed_to(
    page: Page, fake: FakeUpstream
) -> None:
    await open_panel(page, "models")
    rows = page.locator("tbody tr")
    await expect(rows).to_have_count(4)
    use = page.get_by_role("link", name="Use for chats")
    await expect(use).to_have_count(2)  # neither of the one in use, nor of vectors
    price = rows.locator("[data-label^='$']")
    await expect(price).to_have_text(["unknown price", "no cost", "1 / 5", "1 / 2"])
    await page.get_by_label("Abilities").select_option("tools")
    await expect(rows).to_have_count(1)
    await rows.locator("td.lead button").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.locator("tbody")).to_contain_text("family")
    assert await axe(page) == ""
    count = len(fake.requests)
    await dialog.get_by_role("button", name="Probe").click()
    agree = dialog.get_by_role("button", name="Probe")
    await expect(agree).to_be_enabled()
    assert len(fake.requests) == count
    await agree.click()
    await expect(dialog.locator("tbody tr").first).to_be_visible()
    assert len(fake.requests) > count
    await dialog.get_by_role("button", name="Close").first.click()
    await expect(rows.locator("td").nth(5)).not_to_have_text("–")


async def test_models_are_sorted_and_what_is_unknown_is_last(page: Page) -> None:
    await open_panel(page, "models")
    lead = page.locator("tbody td.lead button")
    price = page.get_by_role("button", name="$ per million")

    async def order() -> list[str]:
        return [name.split(":")[2] for name in await lead.all_inner_texts()]

    assert await order() == ["gpt-5.1", "nomic-embed-text", "dear", "cheap"]
    await price.click()
    await expect(price).to_be_focused()
    assert await order() == ["nomic-embed-text", "cheap", "dear", "gpt-5.1"]
    await price.click()
    assert await order() == ["dear", "cheap", "nomic-embed-text", "gpt-5.1"]
    await page.get_by_role("button", name="Longest answer").click()
    assert (await order())[:2] == ["cheap", "dear"]
    await page.set_viewport_size({"width": 360, "height": 900})
    turn = page.get_by_role("button", name="Reverse")
    await page.get_by_label("Order").select_option("")
    await expect(turn).to_be_disabled()
    await page.get_by_label("Order").select_option("price")
    assert (await order())[0] == "nomic-embed-text"
    await turn.click()
    assert (await order())[0] == "dear"
