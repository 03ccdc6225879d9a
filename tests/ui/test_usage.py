"""Usage: charts are drawn, their tables say the same, and both follow the theme."""

import asyncio
import itertools
import re
import time
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, Route, expect

from byok.core.error_table import error_rows
from byok.core.platform.paths import find_paths
from tests.fakes.clock import Clock
from tests.fakes.daemon import Editor
from tests.fakes.journal_entries import entry, write_journal
from tests.fakes.pages import axe, open_panel, settle

HOSTILE = "<img src=x onerror=alert(1)>\u202e</table>"
CHARTS = 6
NOON = time.mktime((*time.localtime()[:3], 12, 0, 0, 0, 0, -1))
# How many points of a drawing have exactly this colour of the theme.
_COUNT = """(canvas, name) => {
  const style = getComputedStyle(document.documentElement);
  const wanted = parseInt(style.getPropertyValue(name).trim().slice(1), 16);
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  let found = 0;
  for (let at = 0; at < data.length; at += 4) {
    const colour = data[at] * 65536 + data[at + 1] * 256 + data[at + 2];
    found += colour === wanted && data[at + 3] === 255;
  }
  return found;
}"""


@pytest.fixture
def clock() -> Clock:
    """The time of the daemon."""
    return Clock(NOON)


@pytest.fixture
def journal(clean_environment: Path) -> Path:
    """A journal with two models, one of unknown price, over 20 days."""
    now = NOON
    entries = []
    for age in range(20):
        at = now - age * 86_400 - 60
        entries.append(entry(started=at, cost=0.5))
        unknown = entry(
            started=at,
            model=HOSTILE,
            cost=None,
            outcome="failed",
            input_tokens=600,
            cache_read_tokens=500,
        )
        entries.append(unknown)
    return write_journal(find_paths().journal, entries)


@pytest.fixture
def daemon_settings(daemon_settings: dict[str, Any], journal: Path) -> dict[str, Any]:
    """The usual settings, with two caps; the journal is there before the daemon."""
    caps = {"requests_per_day": 100, "tokens_per_conversation": 5000}
    return {**daemon_settings, "caps": caps}


def chart(page: Page, title: str) -> Locator:
    heading = page.get_by_role("heading", name=title, exact=True)
    return page.locator("section.chart").filter(has=heading)


async def count(part: Locator, colour: str) -> int:
    pixels: int = await part.locator(".u-wrap canvas").evaluate(_COUNT, colour)
    return pixels


async def figures(page: Page) -> dict[str, str]:
    """Return the key figures by their names."""
    pairs = page.locator(".usage .facts > div")
    texts = [await pair.inner_text() for pair in await pairs.all()]
    return {text.split("\n")[0]: text.partition("\n")[2] for text in texts}


async def numbers(part: Locator) -> list[list[float]]:
    """Return the columns of a chart's table, without the times."""
    rows = part.locator("details tbody tr")
    cells = [await row.locator("td").all_inner_texts() for row in await rows.all()]
    values = [[float(re.sub(r"[^\d.]", "", cell)) for cell in row[1:]] for row in cells]
    return [list(column) for column in zip(*values, strict=True)]


async def test_charts_are_drawn_and_said_and_follow_the_theme(page: Page) -> None:
    await open_panel(page, "usage/month/model")
    await expect(page.locator(".u-wrap canvas")).to_have_count(CHARTS)
    light = 0
    for title, least in {
        "Tokens": 100,
        "Token breakdown": 100,
        "Cost breakdown": 100,
        "Input read from the cache": 20,
        "Time to first token": 20,
        "Requests": 100,
    }.items():
        light = await count(chart(page, title), "--series-1")
        assert light > least, title
    for title, sentence in {
        "Tokens": "37.2K tokens in 30 days.",
        "Input read from the cache": "83% of the input in 30 days came from the cache.",
        "Cost breakdown": "Highest cost: byok:one:m, 100% of all.",
    }.items():
        await expect(chart(page, title).locator("p")).to_have_text(sentence)
    values = await figures(page)
    assert values["Requests"] == "40\n20 failed (50%)"
    assert values["Cost"] == "$10.00\n+ 20 requests of unknown price"
    await expect(page.locator(".say")).to_have_text(
        "Today: $0.50 + 1 request of unknown price"
    )
    await expect(page.locator(".meters")).to_contain_text("of 100")
    requests = chart(page, "Requests")
    await page.locator("#theme").select_option("dark")
    await expect(requests.locator(".u-wrap canvas")).to_be_visible()
    assert await count(requests, "--series-1") == pytest.approx(light, rel=0.1)
    drawn = page.locator(".u-wrap").first
    for width in (360, 1920):  # each is drawn as wide as there is room
        await page.set_viewport_size({"width": width, "height": 900})
        room = await page.locator(".plot").first.evaluate("(one) => one.clientWidth")
        await expect(drawn).to_have_css("width", f"{room}px")
        assert await page.evaluate("document.documentElement.scrollWidth") == width


async def test_what_is_unknown_is_no_zero_and_what_is_zero_is_said(
    page: Page, journal: Path
) -> None:
    local = entry(started=NOON, model="local", cache_read_tokens=None)
    write_journal(journal, [local])
    await open_panel(page, "usage/month/model")
    row = page.locator("tr").filter(has_text="byok:one:local")
    await expect(row.locator("[data-label='From the cache']")).to_have_text("unknown")
    figure = (await figures(page))["Input from the cache"]
    assert figure.startswith("83%\nNot included: 1.2K input tokens")
    tokens = chart(page, "Tokens").locator("p")
    await expect(tokens).to_contain_text("Other input includes 1.2K")
    cache = chart(page, "Input read from the cache").locator("p")
    await expect(cache).to_have_text(
        "83% of the input in 30 days came from the cache. "
        "Not included: 1.2K input tokens whose upstreams do not tell."
    )
    journal.rename(journal.with_name("aside.db"))
    write_journal(journal, [local])
    await open_panel(page, "usage/month/purpose")
    await page.get_by_text("Tokens, cache, requests and speed").click()
    await expect(cache).to_have_text(
        "No upstream told what came from its cache in 30 days."
    )
    assert (await figures(page))["Input from the cache"] == "unknown"
    legend = chart(page, "Tokens").locator(".legend")
    await expect(legend).to_contain_text("Read from the cache unknown")
    journal.rename(journal.with_name("aside.db"))
    await open_panel(page, "usage/quarter/client")
    await expect(
        page.get_by_text("No requests to models in this period.")
    ).to_be_visible()
    await expect(page.locator(".say")).to_have_text("Today: no cost")
    await expect(chart(page, "Tokens")).to_be_hidden()


async def test_tables_say_what_the_charts_say(page: Page) -> None:
    await open_panel(page, "usage/month/model")
    tokens = chart(page, "Tokens")
    await tokens.locator("summary").press("Enter")
    columns = await numbers(tokens)
    assert [len(column) for column in columns] == [30] * 4
    assert [sum(column) for column in columns] == [6000, 0, 30_000, 1200]
    split = chart(page, "Cost breakdown")
    await split.locator("summary").press("Enter")
    rows = await split.locator("tbody tr").last.locator("td").all_inner_texts()
    assert sorted(rows[1:3]) == ["$0.50", "unknown price"]
    assert rows[3:] == ["1"]
    by_day = page.get_by_role("region", name="By day").locator("tbody tr")
    await expect(by_day).to_have_count(20)
    shown = f"byok:one:{HOSTILE}".replace("\u202e", "\\u202e")
    by_model = page.get_by_role("region", name="By model")
    await expect(by_model.get_by_role("link", name=shown)).to_be_visible()
    choice = page.get_by_role("button", name="24 hours")
    await choice.click()
    await expect(page.locator(".usage .facts")).to_contain_text("$0.50")
    await expect(choice).to_be_focused()
    assert page.url.endswith("#/usage/day/model")
    await page.get_by_label("Group by").select_option("purpose")
    await expect(page.get_by_role("heading", name="By purpose")).to_be_visible()
    await page.reload()
    await expect(page.get_by_label("Group by")).to_have_value("purpose")


async def test_the_values_of_a_chart_are_read_by_arrow_keys(page: Page) -> None:
    await open_panel(page, "usage/month/model")
    part = chart(page, "Requests")
    slider, legend = part.get_by_role("slider"), part.locator(".legend")
    await expect(legend).to_contain_text("Total")
    await slider.press("ArrowLeft")
    today = time.strftime("%b ") + str(time.localtime(NOON).tm_mday)
    await expect(legend).to_contain_text(today)
    await expect(legend).to_contain_text("Not failed 1")
    spoken = re.compile(f"{today}.*Not failed 1.*Failed 1")
    await expect(slider).to_have_attribute("aria-valuetext", spoken)
    await slider.press("Home")
    await expect(legend).to_contain_text("Not failed 0")
    await slider.press("ArrowRight")
    await expect(slider).to_have_attribute("aria-valuenow", "1")
    await page.keyboard.press("Tab")
    await expect(legend).to_contain_text("Not failed 20")


async def test_a_month_is_that_of_the_calendar(page: Page) -> None:
    await open_panel(page, "usage/week/model")
    await page.get_by_role("button", name="This month").click()
    today = time.localtime(NOON)
    month = time.strftime("%B", today)
    heading = page.get_by_role("heading", name=month, exact=True)
    await expect(heading).to_be_visible()
    count_text = (await figures(page))["Requests"].splitlines()[0]
    assert count_text == str(2 * min(today.tm_mday, 20))
    days = page.get_by_role("region", name="By day").locator("tbody tr")
    await expect(days).to_have_count(min(today.tm_mday, 20))
    assert page.url.endswith("#/usage/this_month/model")


async def test_a_model_leads_to_its_facts_which_tell_of_its_cost(
    page: Page, journal: Path
) -> None:
    rows: list[dict[str, Any]] = [
        {"cost": 0.75},
        {"cost": None, "outcome": "failed"},
        {"started": 1.0},
    ]
    usual = {"started": NOON, "upstream": "fake", "model": "fake-model"}
    write_journal(journal, [entry(**{**usual, **row}) for row in rows])
    await open_panel(page, "usage/month/model")
    by_model = page.get_by_role("region", name="By model")
    await by_model.get_by_role("link", name="byok:fake:fake-model").click()
    await page.locator("td.lead button").click()
    lately = page.get_by_role("dialog").locator(".facts")
    await expect(lately).to_contain_text("Cost$0.75 + 1")
    await expect(lately).to_contain_text("Requests2Failed1")
    await page.get_by_role("link", name="Last 30 days").click()
    await expect(by_model).to_be_visible()
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_no_sum_is_claimed_of_a_model_that_is_not_listed(
    page: Page, journal: Path
) -> None:
    free = entry(started=NOON, upstream="fake", model="fake-model", cost=0.0)
    dear = [entry(started=NOON, model=f"dear {n}") for n in range(100)]
    write_journal(journal, [free, *dear])
    await open_panel(page, "models/fake-model")
    async with page.expect_response("**/ui/api/usage") as response:
        await page.locator("td.lead button").click()
    await (await response.value).finished()
    await settle(page)
    await expect(page.get_by_role("dialog").locator("table")).to_be_visible()
    await expect(page.get_by_role("dialog").locator(".facts")).to_have_count(0)


async def test_a_first_day_is_shown_by_the_hour(page: Page, journal: Path) -> None:
    journal.rename(journal.with_name("aside.db"))
    failed = {"outcome": "failed", "error": "upstream_timeout", "seconds": 9.0}
    cause = error_rows("en")["upstream_timeout"].what
    retried = {"attempts": 2, "retried": "upstream_down"}
    now = NOON - 60
    write_journal(
        journal, [entry(started=now, **retried), entry(started=now, **failed)]
    )
    await open_panel(page, "usage")
    beside_title = page.locator("#tools").get_by_role("group", name="Period")
    period = beside_title.get_by_role("button")
    await expect(page.locator(".u-wrap canvas")).to_have_count(1)
    await expect(page.locator(":text('24 hours'):visible")).to_have_count(1)
    await expect(period).to_have_count(0)  # there is nothing to choose
    await page.get_by_role("link", name="Costliest requests today").click()
    await expect(page.get_by_role("link", name=cause)).to_be_visible()
    await open_panel(page, "overview")
    await page.locator("a.tile", has_text="Speed").click()
    slowest = page.get_by_role("table", name="Slowest requests today")
    await expect(slowest.locator(".bar")).to_have_count(1)
    await expect(slowest).to_contain_text(
        "byok waited 400 ms (retried ×1) for the model's first word; "
        "the answer took 2.1 s (14 tokens/s)."
    )
    await expect(slowest).to_contain_text("1,200 → 30 tokens")
    down = slowest.get_by_role("link", name=error_rows("en")["upstream_down"].what)
    assert (await down.get_attribute("href")) == "#/problems/upstream_down"
    await expect(page.locator("summary", has_text="Slowest")).to_be_focused()
    await expect(slowest).to_be_in_viewport()
    link = slowest.get_by_role("link").last
    assert (await link.get_attribute("href") or "").endswith("/1")
    write_journal(journal, [entry(started=NOON - 2 * 86_400, cost=0.5)])
    await open_panel(page, "live")
    await open_panel(page, "usage")
    await expect(period).to_have_text(["24 hours", "7 days"])


async def test_a_day_leads_to_what_stood_out_of_it(page: Page) -> None:
    await open_panel(page, "usage/month/model")
    days = page.get_by_role("region", name="By day")
    yesterday = days.locator("tbody tr").nth(1)
    await yesterday.get_by_role("link", name="1", exact=True).click()
    failed = page.get_by_role("table", name="Failed requests, ")
    await expect(failed.locator("tbody tr")).to_have_count(1)
    await expect(failed).to_contain_text("<img")
    await page.go_back()
    link = yesterday.locator("td.lead a")
    name = await link.inner_text()
    await link.click()
    costliest = page.get_by_role("table", name=f"Costliest requests, {name}")
    await expect(costliest).to_contain_text("$0.50")
    await expect(page.locator("summary", has_text="Costliest")).to_be_focused()
    assert await axe(page) == ""


async def test_what_made_a_request_dear_stands_beside_its_cost(
    page: Page, journal: Path
) -> None:
    journal.rename(journal.with_name("aside.db"))
    lost = {"cost": 2.0, "input_tokens": 5000, "cache_read_tokens": 0}
    turns = [entry(started=NOON - 3000, input_tokens=5000, cache_read_tokens=4000)]
    write_journal(journal, [*turns, entry(started=NOON - 60, **lost)])
    await open_panel(page, "usage/costliest")
    dearest = page.get_by_role("table", name="Costliest requests today").locator("tr")
    cost = dearest.nth(1).locator("[data-label=Cost]")
    await expect(cost).to_contain_text("$2.00")
    for text in ("5,000 → 30 tokens", "0% from the cache", "lost in a pause of 49 min"):
        await expect(cost).to_contain_text(text)
    link = cost.get_by_role("link", name="Keep the cache longer")
    cure = "#/settings/set/upstreams.one.long_cache"
    assert await link.get_attribute("href") == cure
    await page.set_viewport_size({"width": 360, "height": 900})
    assert await page.evaluate("document.documentElement.scrollWidth") == 360
    reason = await cost.locator(".sub").bounding_box()
    assert reason
    assert reason["width"] > 280  # no narrow column
    assert await axe(page) == ""


async def test_a_list_that_comes_late_moves_nobody(page: Page) -> None:
    free = asyncio.Event()

    async def answer(route: Route) -> None:
        await free.wait()
        await route.continue_()

    await page.route("**/ui/api/largest", answer)
    await open_panel(page, "usage/slowest")
    await expect(page.locator("details[data-name=slowest]")).to_have_attribute(
        "open", ""
    )
    await page.evaluate("scrollTo(0, 40)")
    free.set()
    await expect(page.get_by_role("table", name="Slowest requests")).to_be_attached()
    assert await page.evaluate("scrollY") == 40


async def test_a_request_that_ends_is_counted(page: Page, editor: Editor) -> None:
    await open_panel(page, "usage/day/model")
    await expect(page.locator(".usage .facts")).to_contain_text("Requests")
    before = int((await figures(page))["Requests"].splitlines()[0])
    table = chart(page, "Requests").locator("summary")
    await table.press("Enter")
    await editor.post("/chat-stream", {"message": "hello"})
    first = page.locator(".usage .facts .figure").nth(1)
    await expect(first).to_have_text(str(before + 1))
    await expect(table).to_be_focused()
    await expect(chart(page, "Requests").locator("table")).to_be_visible()


async def test_an_axis_has_a_clock_of_24_hours_and_no_name_twice(
    page: Page, journal: Path
) -> None:
    journal.rename(journal.with_name("aside.db"))
    quick = {"first_byte": 0.0004, "seconds": 0.0009}
    write_journal(journal, [entry(started=NOON - 60, **quick)])
    await page.evaluate(
        """() => {
          self.drawn = [];
          const { prototype } = CanvasRenderingContext2D;
          const fill = prototype.fillText;
          prototype.fillText = function (text, ...rest) {
            self.drawn.push(text);
            return fill.call(this, text, ...rest);
          };
        }"""
    )
    await open_panel(page, "usage/day/model")
    await page.get_by_text("Tokens, cache, requests and speed").click()
    await page.wait_for_function("() => self.drawn.some((one) => one.endsWith('ms'))")
    drawn = await page.evaluate("self.drawn")
    assert any(re.fullmatch(r"(1[3-9]|2\d):00", name) for name in drawn)
    assert not any(re.search(r"[AP]M", name) for name in drawn)
    named = [name for name in drawn if name.endswith("ms")]
    assert all(name != other for name, other in itertools.pairwise(named))


async def test_a_price_that_is_unknown_says_how_it_is_set(
    page: Page, journal: Path
) -> None:
    journal.rename(journal.with_name("aside.db"))
    await open_panel(page, "usage/day/model")
    slowest = page.get_by_text("Slowest requests today")
    await expect(slowest).to_have_count(1)  # nothing leads to a list of none
    await slowest.click()
    none = page.get_by_text("No request to a model was answered this day.")
    await expect(none).to_be_visible()
    await page.get_by_text("Failed requests today").click()
    await expect(page.get_by_text("No request to a model failed")).to_be_visible()
    write_journal(journal, [entry(started=NOON - 60, cost=None)])
    await open_panel(page, "overview")
    await open_panel(page, "usage/costliest")
    how = page.get_by_role("link", name="Show how")
    await expect(how).to_have_count(2)  # beside the sums, and where none is listed
    assert await axe(page) == ""
    await how.first.click()
    await expect(page.get_by_text("price_output = 15.0")).to_be_visible()
