"""The panel of conversations, and the timeline of one."""

import asyncio
import time
from typing import Any

import pytest
from playwright.async_api import Page, expect

from byok.core.error_table import error_rows
from byok.core.platform.paths import find_paths
from byok.features.journal.entry import JournalEntry
from tests.fakes.daemon import Editor, settings_for
from tests.fakes.journal_entries import entry, write_journal
from tests.fakes.pages import Watch, axe, control, open_panel, settle
from tests.fakes.upstream import FakeUpstream, Script, delta

START = time.time() - 3600
# How many lines of text an element has.
_LINES = (
    "(e) => Math.round(e.offsetHeight / parseFloat(getComputedStyle(e).lineHeight))"
)


@pytest.fixture
def daemon_settings(fake: FakeUpstream) -> dict[str, Any]:
    """A model whose cache spares $9 in a thousand tokens."""
    prices = {"price_input": 10_000, "price_cache_read": 1_000}
    facts = {"fake-model": prices}
    return settings_for(fake.url, model="fake-model", facts=facts)


def turn(index: int, **fields: Any) -> JournalEntry:
    """A turn of a conversation, ten seconds after the one before."""
    return entry(**{"request_id": f"r{index}", "started": START + 10 * index, **fields})


def write(*entries: JournalEntry) -> None:
    write_journal(find_paths().journal, entries)


def words(text: str) -> str:
    return " ".join(text.split())


async def test_a_row_has_two_lines_and_fits_the_page(page: Page) -> None:
    write(
        turn(0, client="intellij/1", started=START - 40 * 86_400, repairs=2),
        turn(1, conversation="b", upstream="gateway", model="maker/model-of-a-name"),
    )
    await open_panel(page, "conversations")
    lines = page.locator("td.lead .sub, td .names")
    await expect(lines).to_have_count(4)
    rows = page.locator("tbody tr")
    for index, max_lines in enumerate([1, 2, 1, 2]):
        assert await lines.nth(index).evaluate(_LINES) <= max_lines, index
    await page.set_viewport_size({"width": 360, "height": 900})
    assert await page.evaluate("document.documentElement.scrollWidth") == 360
    await expect(rows.last).to_contain_text("repaired ×2")


async def test_a_conversation_is_found_and_told_as_a_timeline(page: Page) -> None:
    write(
        turn(0, tool_calls="view x3, save-file", cache_read_tokens=1000),
        turn(
            1,
            repairs=2,
            attempts=2,
            retried="upstream_down of_a_later_byok",
            loop="ended-failing-6",
            model_asked="sonnet",
        ),
        turn(2, outcome="failed", error="upstream_auth", cost=None),
        turn(3, started=START + 900, cache_read_tokens=0, cost=1.5, seconds=10.0),
        turn(4, conversation="other", folder="", client="cli/1"),
    )
    await open_panel(page, "conversations")
    rows = page.locator("tbody tr")
    await expect(rows.locator("a")).to_have_text(["shop", "CLI"])
    await expect(rows.first).to_contain_text("cache lost ×1")
    await rows.first.locator("td").nth(2).click()  # any part of the row
    turns = page.locator("ol.turns > .turn")
    await expect(turns).to_have_count(4)
    await expect(page.locator("h1")).to_have_text("shop · VS Code")
    first, second, third, last = [
        words(await turns.nth(n).inner_text()) for n in range(4)
    ]
    for part in ("1 Chat", "1,200 → 30 tokens", "83% from the cache", "2.5 s $0.25"):
        assert part in first
    tools = page.get_by_label("Tools that the answer called").get_by_role("listitem")
    assert await tools.all_inner_texts() == ["view ×3", "save-file"]
    for part in (
        *("asked for: sonnet", "repaired ×2", "retried ×1"),
        *("loop ×6, ended", "ended the turn"),
    ):
        assert part in second
    for part in (error_rows()["upstream_down"].what, "of_a_later_byok"):
        await expect(turns.nth(1).get_by_role("link", name=part)).to_be_visible()
    assert "3 Chat failed" in third
    cure = turns.nth(2).locator("code").get_by_text("keys set NAME")
    await expect(cure).to_be_visible()
    assert "cache lost" in last
    assert "byok waited 400 ms for the model's first word" in last
    assert "the answer took 9.6 s (3 tokens/s)." in last
    assert "Pause: 15 minutes" in await page.locator(".pause").inner_text()
    reason = page.get_by_role("region", name="Why it was dear or slow")
    assert "Turn 4 cost $1.50, 75% of this conversation." in await reason.inner_text()
    assert "a pause of 15 minutes" in await reason.inner_text()
    settings = reason.get_by_role("link", name="Keep the cache longer")
    assert (await settings.get_attribute("href") or "").endswith("one.long_cache")
    await reason.get_by_role("link", name="Show the turn").press("Enter")
    await expect(turns.nth(3)).to_be_focused()
    tiles = words(await page.locator(".tiles").inner_text())
    for part in ("Cost $2.00 + 1 request of unknown price", "17.5 s", "63%"):
        assert part in tiles
    assert await axe(page) == ""
    await turns.nth(2).get_by_role("link").click()
    await expect(page.locator("h3").first).to_be_focused()
    await page.go_back()
    await page.get_by_role("link", name="All conversations").click()
    await expect(page.locator("tbody tr")).to_have_count(2)


async def test_what_the_cache_saved_and_a_lost_one_cost_is_told(page: Page) -> None:
    """Neither touch nor keys reach what only a tooltip says."""
    known = {"upstream": "fake", "model": "fake-model"}
    write(
        turn(0, **known),
        turn(1, **known),
        turn(90, **known, cache_read_tokens=0),
        turn(91, conversation="other"),  # its price is unknown
    )
    await open_panel(page, "conversations")
    row = page.locator("tbody tr").nth(1)
    await expect(row).to_contain_text("cache lost ×1: +$9.00")
    await row.get_by_role("link").click()
    tile = page.locator(".tile", has_text="From the cache")
    await expect(tile).to_contain_text("turn by turn")  # what its bars are
    await expect(tile).to_contain_text("Saved by the cache: $18.00")
    await expect(tile).to_contain_text("Paid for lost caches: $9.00 (1K tokens)")
    await open_panel(page, "usage/day/client")
    figures = page.locator(".usage .facts > div")
    saved = figures.filter(has_text="Saved by the cache")
    await expect(saved).to_contain_text("$18.00")
    await expect(saved).to_contain_text("3K tokens · 1K of them of unknown price")
    lost = figures.filter(has_text="Paid for lost caches")
    await expect(lost).to_contain_text("$9.00")
    await expect(page.locator(".usage")).to_contain_text("at the full price")
    await lost.get_by_role("link", name="Show the request").click()
    await expect(page.locator("ol.turns > .turn").nth(2)).to_be_focused()
    await page.go_back()
    await lost.get_by_role("link", name="Keep the cache longer").click()
    await expect(control(page, "upstreams.fake.long_cache")).to_be_focused()


async def test_a_long_conversation_comes_in_pages_and_goes_on(page: Page) -> None:
    free = {"cost": 0.0}
    write(*(turn(index, **free) for index in range(449)), turn(449, seconds=9, **free))
    await open_panel(page, "conversations/c0ffee-1")
    turns = page.locator("ol.turns > .turn")
    earlier = page.get_by_role("button", name="Show earlier turns")
    for count in (200, 400):
        await expect(turns).to_have_count(count)
        await expect(turns.first.locator(".no")).to_have_text(str(451 - count))
        await earlier.click()
    await expect(turns).to_have_count(450)
    await expect(earlier).to_be_hidden()
    numbers = await page.locator(".turn .no").all_text_contents()
    assert numbers == [str(index) for index in range(1, 451)]
    await expect(turns.nth(50)).to_be_focused()  # where earlier ones end
    reason = page.get_by_role("region", name="Why it was dear or slow")
    assert "Turn 450 took longest: 9\xa0s." in await reason.inner_text()
    assert "no cost" in await page.locator(".tiles").inner_text()
    first_row = await turns.first.element_handle()
    write(turn(450), turn(451))
    refresh = page.get_by_role("button", name="Refresh")
    await refresh.click()
    await expect(turns).to_have_count(452)
    await expect(refresh).to_be_focused()
    assert await page.evaluate("(turn) => turn.isConnected", first_row)


async def test_more_conversations_are_shown_on_demand(page: Page) -> None:
    await open_panel(page, "conversations/nobody's")
    text = await page.locator("#main").inner_text()
    assert "no requests of this conversation" in text
    await open_panel(page, "overview")
    await page.get_by_role("button", name="Look again").click()
    await expect(page.locator("#status")).to_contain_text("looked up again")
    await open_panel(page, "conversations")
    await expect(page.locator("#status")).to_be_empty()
    assert "No conversations yet" in await page.locator(".panel").inner_text()
    talks = [turn(n, conversation=f"c{n}", folder=f"f{n}") for n in range(120)]
    write(*talks)
    await page.get_by_role("button", name="Refresh").click()
    rows = page.locator("tbody tr")
    older = page.get_by_role("button", name="Show older conversations")
    for count in (50, 100):
        await expect(rows).to_have_count(count)
        await older.click()
    await expect(rows).to_have_count(120)
    await expect(older).to_be_hidden()
    links = rows.locator("a")
    await expect(links.nth(100)).to_be_focused()
    assert await links.all_inner_texts() == [f"f{n}" for n in range(119, -1, -1)]
    write(turn(200, conversation="c7", folder="f7"))
    await page.get_by_role("button", name="Refresh").click()
    await expect(links.first).to_have_text("f7")
    await expect(rows).to_have_count(120)


async def test_conversations_are_sorted_and_filtered_with_their_sum(
    page: Page,
) -> None:
    write(
        turn(0, conversation="a", folder="atlas", cost=0.2),
        turn(1, conversation="b", folder="brick", cost=0.7, client="intellij/0.3"),
        turn(2, conversation="c", folder="cove", cost=None, outcome="failed"),
        turn(3, conversation="c", folder="cove", cost=2.0),
    )
    await open_panel(page, "conversations")
    links = page.locator("td.lead a")
    count = page.locator("#tools [role=status]")
    await expect(count).to_have_text(
        "3 conversations · last 90 days · $2.90 + 1 request of unknown price, "
        "without requests outside conversations"
    )

    async def press(head: str, *names: str) -> None:
        button = page.get_by_role("columnheader", name=head).get_by_role("button")
        await button.press("Enter")
        await expect(links).to_have_text(names)
        await expect(button).to_be_focused()

    await press("Cost", "cove", "brick", "atlas")
    await press("Cost", "atlas", "brick", "cove")
    await press("Conversation", "atlas", "brick", "cove")
    head = page.locator("th[aria-sort]")
    await expect(head).to_have_attribute("aria-sort", "ascending")
    await page.get_by_label("Cost", exact=True).select_option("0.5")
    await expect(links).to_have_text(["brick", "cove"])
    await page.get_by_label("Client", exact=True).select_option("intellij")
    await expect(links).to_have_text(["brick"])
    await expect(count).to_have_text("1 of 3 · last 90 days · $0.70")
    await links.first.click()
    await expect(page.locator("h1")).to_have_text("brick · JetBrains")
    await page.go_back()  # the filters are as they were
    await expect(count).to_have_text("1 of 3 · last 90 days · $0.70")
    await page.get_by_label("With errors").check()
    await page.get_by_role("button", name="Remove filters").click()
    await expect(links).to_have_text(["cove", "brick", "atlas"])
    search = page.get_by_role("searchbox")
    await expect(search).to_be_focused()
    await search.fill("ATL")
    await expect(links).to_have_text(["atlas"])
    await page.set_viewport_size({"width": 360, "height": 800})
    await search.fill("")
    await page.get_by_label("Order").select_option("cost")
    await expect(links).to_have_text(["cove", "brick", "atlas"])
    reverse = page.get_by_role("button", name="Reverse")
    await reverse.press("Enter")
    await expect(links).to_have_text(["atlas", "brick", "cove"])
    await expect(reverse).to_be_focused()
    assert page.url.endswith("?sort=cost&descending=false")
    assert await axe(page) == ""
    assert await page.evaluate("document.documentElement.scrollWidth") == 360


async def test_an_address_keeps_what_is_shown_but_no_words(page: Page) -> None:
    client = "a&b=%2F?c"  # such as somebody's program may call itself
    write(
        turn(0, conversation="a", folder="atlas", client=client, cost=0.2),
        turn(1, conversation="b", folder="brick", client=client, cost=2.0),
        turn(2, conversation="c", folder="cove", cost=3.0),
    )
    await open_panel(page, "conversations")
    links = page.locator("td.lead a")
    await expect(links).to_have_count(3)
    await page.get_by_label("Client", exact=True).select_option(client)
    head = page.get_by_role("columnheader", name="Cost").get_by_role("button")
    await head.click()
    await head.click()
    await expect(links).to_have_text(["atlas", "brick"])
    search = page.get_by_role("searchbox")
    await search.fill("brick")
    await expect(links).to_have_text(["brick"])
    await page.reload()
    await expect(links).to_have_text(["atlas", "brick"])
    assert "brick" not in page.url
    await links.first.click()
    assert page.url.endswith("#/conversations/a")
    await page.get_by_role("link", name="All conversations").click()
    await expect(links).to_have_text(["atlas", "brick"])
    await page.get_by_label("With errors").check()
    await page.get_by_role("button", name="Remove filters").click()
    await expect(links).to_have_text(["cove", "brick", "atlas"])
    assert page.url.endswith("#/conversations")
    other = "conversations?least_cost=1&sort=turns&descending=no&errors=x&odd=1"
    await page.evaluate("(other) => { location.hash = `#/${other}`; }", other)
    await expect(links).to_have_text(["cove", "brick"])


async def test_a_conversation_that_runs_is_marked(
    page: Page, editor: Editor, fake: FakeUpstream
) -> None:
    fake.play(Script([delta(content="one")], end="hang"))
    write(turn(0, conversation="talk"), turn(1, conversation="other"))
    await open_panel(page, "conversations")
    row = page.locator("tr").filter(has=page.locator("a[href$='talk']"))
    asking = asyncio.ensure_future(editor.chat(conversation_id="talk"))
    await expect(row).to_contain_text("running")
    asking.cancel()
    await expect(row).not_to_contain_text("running")


async def test_names_are_the_same_everywhere(page: Page) -> None:
    name = "דף <b>" + "数" * 190
    write(turn(0, folder=name))
    await open_panel(page, "overview")
    links = page.locator(".list a[href^='#/conversations/']")
    full_name = await links.first.get_attribute("aria-label") or ""
    assert full_name.startswith(f"{name} · VS Code · ")
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox").last.fill("数数 vs code")
    await expect(page.locator("#option-0")).to_contain_text(full_name)
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_have_text(f"{name} · VS Code")


async def test_a_journal_that_cannot_be_read_is_said(page: Page, watch: Watch) -> None:
    journal = find_paths().journal
    journal.parent.mkdir(parents=True, exist_ok=True)
    watch.allow("503 /ui/api/")
    for panel in ("conversations", "conversations/c", "problems"):
        journal.write_bytes(b"no database at all" * 500)
        await open_panel(page, panel)
        text = await page.get_by_role("alert").inner_text()
        assert "cannot be read" in text
        assert "move the file away" in text
        journal.unlink()
        await page.get_by_role("button", name="Refresh").click()
        await expect(page.get_by_role("alert")).to_have_count(0)
        await settle(page)


async def test_what_nobody_told_is_not_shown_as_nothing(page: Page) -> None:
    unknown = dict.fromkeys(("input_tokens", "output_tokens", "cache_read_tokens"))
    unknown["cost"] = None
    first, second = (turn(number, outcome="failed", **unknown) for number in (0, 1))
    write(first, second._replace(prompt_change="message 3"))
    await open_panel(page, "conversations")
    row = await page.locator("tbody tr").inner_text()
    assert row.count("unknown") == 3  # price, tokens and cache
    assert "0 / 0" not in row
    await open_panel(page, "conversations/c0ffee-1")
    tiles = words(await page.locator(".tiles").inner_text())
    assert "Cost unknown price Time" in tiles
    assert "From the cache unknown" in tiles
    assert "Tokens in / out unknown" in tiles
    assert "tokens unknown" in await page.locator(".turn").first.inner_text()
    mends = await page.locator(".mends").inner_text()
    assert "differs from the previous one at message 3" in mends
    assert "nothing after that" not in mends


async def test_conversations_of_the_same_minute_differ(page: Page) -> None:
    same = {"folder": "", "client": "other"}
    write(
        turn(0, conversation="one-aaaaaa", **same),
        turn(0, conversation="one-bbbbbb", **same),
    )
    await open_panel(page, "conversations")
    leads = page.locator("td.lead")
    await expect(leads).to_have_count(2)
    names = await leads.all_inner_texts()
    assert names[0] != names[1]
    await open_panel(page, "overview")
    rows = page.locator(".list li", has=page.locator("a[href^='#/conversations/']"))
    await expect(rows).to_have_count(2)
    names = await rows.all_inner_texts()
    assert names[0] != names[1]
    await rows.last.get_by_role("link").click()
    await expect(page.locator(".title")).to_contain_text("#bbbb")
