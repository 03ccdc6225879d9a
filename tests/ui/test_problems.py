"""The panel of repairs and errors."""

import sqlite3
import time
from contextlib import closing
from typing import Any

import pytest
from playwright.async_api import Page, expect

from byok.core.error_table import error_rows
from byok.core.platform.paths import find_paths
from byok.features.journal.entry import JournalEntry
from tests.fakes.daemon import Editor
from tests.fakes.journal_entries import entry, write_journal
from tests.fakes.pages import axe, field, open_panel, settle
from tests.fakes.upstream import FakeUpstream, refusal

HOUR = 3600


def ago(hours: float, **fields: Any) -> JournalEntry:
    """A request of some hours ago."""
    return entry(started=time.time() - hours * HOUR, **fields)


def write(*entries: JournalEntry) -> None:
    write_journal(find_paths().journal, entries)


REFUSED = {"outcome": "failed", "error": "upstream_auth"}


async def test_errors_come_by_weight_with_their_cures_and_requests(
    page: Page,
) -> None:
    write(
        ago(200, outcome="failed", error="upstream_garbled"),
        ago(3, **REFUSED, upstream="fake"),
        ago(
            2.5,
            **REFUSED,
            upstream="fake",
            client="cli/0.9",
            conversation="other",
            folder="till",
        ),
        *(
            ago(n, outcome="failed", error="of_a_later_byok", upstream=upstream)
            for n, upstream in ((2, "a"), (3, "b"), (4, "b"), (30, "b"), (40, "b"))
        ),
        ago(1, outcome="cancelled"),
        ago(0.5, attempts=2, retried="upstream_overloaded"),
    )
    await open_panel(page, "problems")
    headings = page.locator(".weight h2")
    assert [" ".join(text.split()) for text in await headings.all_inner_texts()] == [
        "To fix 1 problem · 2× in 7 days",
        "Worth a look 1 problem · 5× in 7 days",
        "Cured by byok 2 problems · 2× in 7 days",
    ]
    count = page.locator("#nav a[href='#/problems'] .count")
    await expect(count).to_have_text("1 to fix")
    errors = page.locator("article")
    both = " ".join((await errors.nth(1).inner_text()).split())
    for words in ("does not know this code", "5×", "a · 1×", "b · 4×", "7 days"):
        assert words in both
    overloaded = error_rows()["upstream_overloaded"].what
    await expect(errors.nth(2)).to_contain_text(overloaded.rstrip("."))
    await errors.nth(2).locator("summary").click()
    await expect(errors.nth(2).locator("tbody tr")).to_have_count(1)
    await expect(
        errors.nth(2).get_by_role("button", name="Copy: upstream_overloaded")
    ).to_be_visible()
    assert "Requests were cancelled" in await errors.nth(3).inner_text()
    first = errors.first
    told = await first.inner_text()
    whose = ("Client", "VS Code", "CLI")
    for words in ("2×", "fake", *whose, "What to do:", "Nothing has been answered"):
        assert words in told
    await expect(first.locator("code").get_by_text("keys set NAME")).to_be_visible()
    cure = first.get_by_role("link", name="Replace key")
    assert await cure.get_attribute("href") == "#/settings/key/fake"
    await page.get_by_role("button", name="30 days").click()
    await expect(errors).to_have_count(5)
    await first.locator("summary").click()
    await expect(first.locator("code", has_text="upstream_auth")).to_be_visible()
    await expect(
        first.get_by_role("button", name="Copy: upstream_auth")
    ).to_be_visible()
    assert await axe(page) == ""
    await first.get_by_role("link", name="till").click()
    await expect(page.locator("ol.turns > li")).to_have_count(1)
    await open_panel(page, "problems/count")
    await expect(errors).to_have_count(5)
    counts = [text[0] for text in await errors.locator(".times").all_inner_texts()]
    assert counts == ["5", "2", "1", "1", "1"]
    await expect(page.get_by_role("button", name="30 days")).to_have_attribute(
        "aria-pressed", "true"
    )


async def test_a_setting_that_a_cure_names_is_a_link_to_it(page: Page) -> None:
    write(ago(1, outcome="failed", error="upstream_connect"))
    for name, setting in (
        ("base_url", "upstreams.fake.base_url"),
        ("[network]", "network.proxy"),
    ):
        await open_panel(page, "problems")
        cure = page.locator("article").get_by_role("link", name=name)
        await cure.first.click()
        await expect(field(page, setting)).to_be_visible()
        await expect(page.get_by_text("No setting fits")).to_be_hidden()


async def test_each_cure_leads_to_the_very_place(page: Page) -> None:
    setting = "#set-upstreams-fake-"
    cures = {
        "upstream_connect": ("Change address", f"{setting}base_url"),
        "upstream_name": ("Change address", f"{setting}base_url"),
        "upstream_not_json": ("Change address", f"{setting}base_url"),
        "upstream_timeout": ("Change timeout", f"{setting}timeout"),
        "upstream_protocol": ("Change protocol", f"{setting}dialect"),
        "upstream_cut": ("Change the longest answer", f"{setting}max_tokens"),
        "upstream_failed": ("Choose fallback", "#set-routing-fallback-chat"),
        "upstream_not_found": ("Choose model", "dialog.palette input"),
        "upstream_region": ("Add upstream", "#add-kind"),
    }
    write(
        *(
            ago(1, outcome="failed", error=code, upstream="fake", model="fake-model")
            for code in cures
        ),
        ago(1, **REFUSED, upstream="fake"),
    )
    await open_panel(page, "problems")
    for code, (name, selector) in cures.items():
        card = page.locator("article").filter(has=page.locator(f"[data-code={code}]"))
        await card.get_by_role("link", name=name).click()
        await expect(page.locator(selector)).to_be_focused()
        await page.keyboard.press("Escape")
        await open_panel(page, "problems")
    await page.get_by_role("link", name="Replace key").click()
    await expect(page.get_by_role("dialog", name="Key for fake")).to_be_visible()


async def test_a_model_that_an_editor_named_leads_to_those_that_there_are(
    page: Page,
) -> None:
    gone = {"outcome": "failed", "error": "upstream_not_found", "upstream": "fake"}
    write(ago(1, model="retired", **gone))
    await open_panel(page, "problems")
    await expect(page.locator("article")).to_contain_text("No setting names")
    await page.get_by_role("link", name="Show its models").click()
    await expect(page.locator(".panel.models input")).to_have_value("byok:fake:")


NAMED = {
    "upstreams": {name: {"type": "demo"} for name in ("a", "b", "c")},
    "routing": {"models": {"title": "byok:a:one", "summary": "byok:b:one"}},
}


@pytest.mark.parametrize("daemon_settings", [NAMED])
async def test_a_model_of_several_upstreams_leads_to_each_setting_that_names_it(
    page: Page,
) -> None:
    gone = {"outcome": "failed", "error": "upstream_not_found", "model": "one"}
    write(*(ago(n, upstream=name, **gone) for n, name in enumerate("abc", 1)))
    await open_panel(page, "problems")
    links = page.locator("article .cure a.button")
    hashes = await links.evaluate_all("links => links.map((link) => link.hash)")
    choose = "#/settings/choose/routing.models"
    assert hashes == [f"{choose}.title", f"{choose}.summary", "#/models/byok:c:"]
    assert [text[-1] for text in await links.all_inner_texts()] == ["a", "b", "c"]


async def test_an_upstream_that_failed_before_the_period_says_when(
    page: Page,
) -> None:
    write(ago(72, upstream="fake", **REFUSED), ago(1, repairs=1, model="m"))
    await open_panel(page, "problems")
    errors = page.locator("article")
    await expect(errors.locator(".times")).to_have_text("1×")
    await page.get_by_role("button", name="24 hours").click()
    await expect(errors.locator(".times")).to_have_text("now")
    await expect(errors).to_contain_text("before the period")
    assert "list of models" not in await errors.inner_text()
    await expect(page.get_by_label("Latest affected requests")).to_be_visible()


async def test_of_many_errors_the_latest_are_shown_first(page: Page) -> None:
    write(
        *(
            ago(n, outcome="failed", error=f"code_{n}", model="m" * 200)
            for n in range(1, 31)
        )
    )
    await open_panel(page, "problems")
    errors = page.locator("article")
    await expect(errors).to_have_count(20)
    await page.get_by_role("button", name="Show 10 more").click()
    await expect(errors).to_have_count(30)


async def test_repairs_are_told_by_model_and_explained(page: Page) -> None:
    write(
        *(ago(n, model="good", upstream="a") for n in (1, 2, 3)),
        ago(4, model="good", upstream="a", repairs=1),
        ago(5, model="bad", upstream="a", dropped_calls=2, notices=1),
        *(ago(6 + n, model="bad", upstream="a", repairs=1) for n in range(14)),
    )
    await open_panel(page, "problems")
    rows = page.get_by_label("Repairs by model").locator("tbody tr")
    texts = [" ".join(row.split()) for row in await rows.all_inner_texts()]
    assert texts == [
        "byok:a:bad 15 15 (100%) 14 2 0 0 1",
        "byok:a:good 4 1 (25%) 1 0 0 0 0",
    ]
    await page.get_by_text("What these words mean").click()
    assert "incomplete calls" in await page.locator("dl.words").inner_text()
    last = page.get_by_label("Latest affected requests")
    await expect(last.locator("tbody tr")).to_have_count(10)
    assert "repaired ×1" in await last.inner_text()
    await page.locator("summary", has_text="6 older requests").click()
    assert await axe(page) == ""


async def test_a_page_without_problems_says_so_and_what_is_damaged(page: Page) -> None:
    await open_panel(page, "problems")
    panel = page.locator(".panel.problems")
    refresh = page.get_by_role("button", name="Refresh")
    assert "No model was asked in this period." in await panel.inner_text()
    assert await axe(page) == ""
    write(ago(1), ago(1))
    await refresh.click()
    await expect(panel).to_contain_text("went well")
    await expect(page.locator("article")).to_have_count(0)
    write(ago(3, **REFUSED), ago(2, **REFUSED))
    with closing(sqlite3.connect(find_paths().journal)) as db, db:
        db.execute("UPDATE request SET client = x'00' WHERE id = 3")
    await refresh.click()
    await expect(panel).to_contain_text("1 damaged request is not shown.")
    await expect(page.locator("article")).to_have_count(1)


async def test_a_refresh_leaves_the_user_where_they_are(page: Page) -> None:
    write(ago(3, **REFUSED), ago(2, outcome="failed", error="upstream_garbled"))
    await open_panel(page, "problems")
    errors = page.locator("article")
    await errors.nth(1).locator("summary").click()
    link = errors.nth(1).locator("td a")
    await link.focus()
    write(ago(1, outcome="failed", error="upstream_timeout"))
    await page.evaluate(
        "[...document.querySelectorAll('button')]"
        ".find((button) => button.textContent === 'Refresh').click()"
    )
    await expect(errors).to_have_count(3)
    await settle(page)
    await expect(errors.nth(2).locator("td a")).to_be_focused()
    assert await errors.locator("details[open]").count() == 1


async def test_what_fails_now_comes_by_itself(
    page: Page, editor: Editor, fake: FakeUpstream
) -> None:
    await open_panel(page, "problems")
    assert "No model was asked" in await page.locator(".panel.problems").inner_text()
    fake.play(refusal(401, "no such key"))
    await editor.chat(conversation_id="c0ffee")
    errors = page.locator("article")
    await expect(errors).to_have_count(1)
    await expect(page.locator("#nav .count").last).to_have_text("1 to fix")
    assert "rejects the key" in await errors.first.inner_text()
    await expect(errors.first.locator(".cure q")).to_contain_text("no such key")
    await errors.first.locator("summary").click()
    await errors.first.locator("td a").click()
    turns = page.locator("ol.turns > li")
    await expect(turns).to_have_count(1)
    await editor.chat(conversation_id="c0ffee")
    await expect(turns).to_have_count(2)
