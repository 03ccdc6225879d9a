"""The overview: what is slow holds up nothing, and keys are looked for once."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from byok.core.error_table import error_rows
from byok.core.platform.paths import find_paths
from tests.fakes.daemon import Editor
from tests.fakes.journal_entries import entry, write_journal
from tests.fakes.pages import Watch, axe, control, open_panel
from tests.fakes.upstream import FakeUpstream, Script, delta, refusal

HOSTILE = "<script>alert(1)</script>\u202egnp"


@pytest_asyncio.fixture(loop_scope="session")
async def silent() -> AsyncIterator[str]:
    """The address of a server that accepts connections and never answers."""

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


@pytest.fixture
def daemon_settings(fake: FakeUpstream, silent: str) -> dict[str, Any]:
    """One upstream that answers, one that is not there, and one that is silent."""
    fake.models = ["one", HOSTILE]
    return {
        "upstreams": {
            "fake": {"base_url": fake.url, "model": "one"},
            "gone": {"base_url": "http://127.0.0.1:1/v1"},
            "silent": {"base_url": silent},
        },
        "caps": {"requests_per_day": 100, "usd_per_day": 5},
    }


async def test_a_silent_upstream_holds_up_nothing(
    page: Page, fake: FakeUpstream
) -> None:
    await expect(section(page, "Upstreams")).to_contain_text("Is it running")
    rows = section(page, "Upstreams").locator("li")
    await expect(rows.nth(0)).to_contain_text("available")
    await expect(rows.nth(0)).to_contain_text("OpenAI-compatible")
    await expect(rows.nth(2)).to_contain_text("checking")
    for text in ("byok:fake:one", "0 of 100 used", "not set", "Latest conversations"):
        await expect(page.locator(".panel")).to_contain_text(text)
    health = page.locator(".health.warn")
    await expect(health).to_contain_text("gone")
    await expect(health).to_contain_text("asked for the list of models")
    cost = page.locator("a.tile").filter(has_text="Cost today")
    await expect(cost).to_contain_text("$5.00")
    await open_panel(page, "models")
    models = page.get_by_role("region", name="Models")
    await expect(models.locator("tbody tr")).to_have_count(2)
    search = page.get_by_label("Find a model")
    await search.fill("SCRIPT")
    await expect(models.locator("tbody tr")).to_have_count(1)
    await expect(models).to_contain_text("<script>alert(1)</script>\\u202egnp")
    await search.fill("nothing like it")
    await expect(page.get_by_text("0 of 0 models")).to_be_visible()
    count = len(fake.list_headers)
    await open_panel(page, "search")
    await open_panel(page, "overview")
    assert len(fake.list_headers) == count
    fake.models = [*fake.models, "three"]
    button = page.get_by_role("button", name="Check again")
    await button.click()
    await expect(rows.nth(0)).to_contain_text("3 models")
    await expect(button).to_be_focused()
    assert len(fake.list_headers) == count + 1


@pytest.mark.parametrize(
    "daemon_settings",
    [{"upstreams": {"demo": {}, "gone": {"base_url": "http://127.0.0.1:1/v1"}}}],
)  # one that is silent would be a problem, too, after a while
async def test_what_fails_is_cured_from_the_first_panel(page: Page) -> None:
    await section(page, "Upstreams").get_by_role("link", name="Add upstream").click()
    await expect(page.locator("#add-key")).to_be_visible()  # beside the vendor
    await page.keyboard.press("Escape")
    await open_panel(page, "overview")
    upstream = section(page, "Upstreams").locator("li", has_text="gone")
    for part in (page.locator(".health"), upstream):
        await part.get_by_role("link", name="Change address").click()
        await expect(control(page, "upstreams.gone.base_url")).to_be_focused()
        await open_panel(page, "overview")
    assert await axe(page) == ""
    count = page.locator("#nav a[href='#/problems'] .count")
    await expect(count).to_have_text("1 to fix")
    failed = {"outcome": "failed", "error": "upstream_auth", "upstream": "gone"}
    old = entry(started=time.time() - 86_400, **failed)
    write_journal(find_paths().journal, [old])
    await open_panel(page, "settings")
    await open_panel(page, "overview")
    health = page.locator(".health")
    await expect(health.locator(".say")).to_have_text("2 problems to fix.")
    await expect(health).to_contain_text("Failing: gone")
    for code in ("upstream_auth", "upstream_connect"):
        problem = health.get_by_role("link", name=error_rows()[code].what)
        await expect(problem).to_have_attribute("href", f"#/problems/{code}")
    assert await axe(page) == ""
    await health.get_by_role("link", name="Show errors").click()
    await expect(count).to_have_text("2 to fix")
    # What a request has met comes first; the other one was found out otherwise.
    await expect(page.locator("article")).to_have_count(2)
    await expect(page.locator("article .times")).to_have_text(["1×", "now"])
    unmet = page.locator("article").last
    await expect(unmet.locator("q")).to_contain_text("127.0.0.1:1")
    await expect(unmet.get_by_text("What to do:")).to_be_hidden()  # it was said
    await unmet.get_by_text("Causes and requests").click()
    await expect(unmet.get_by_text("What to do:")).to_be_visible()
    await unmet.get_by_role("link", name="Change address").click()
    await expect(control(page, "upstreams.gone.base_url")).to_be_focused()


async def test_a_narrow_page_has_the_same_order(page: Page) -> None:
    await expect(page.locator(".health")).to_be_visible()
    await expect(page.locator("[aria-busy]")).to_have_count(0)
    for width in (1280, 360):
        await page.set_viewport_size({"width": width, "height": 900})
        tops = [
            await part.evaluate("(one) => one.getBoundingClientRect().top")
            for part in (
                page.locator(".health"),
                page.locator(".tiles"),
                section(page, "Latest conversations"),
                section(page, "Daemon"),
            )
        ]
        assert tops == sorted(tops), width
    keys = await section(page, "Keys").bounding_box()
    assert keys and keys["y"] < tops[-1]  # what is rarely looked at comes last
    await section(page, "Keys").get_by_role("button", name="Look again").click()
    await expect(page.locator("#status")).to_contain_text("looked up again")
    await expect(page.locator("#connection")).to_contain_text("Connected")
    await expect(page.locator("#connection .badge")).to_be_visible()


async def test_what_runs_and_what_ended_is_shown_at_once(
    page: Page, editor: Editor, fake: FakeUpstream
) -> None:
    await expect(page.get_by_text("No requests yet")).to_be_visible()
    await expect(section(page, "First steps").locator("li.done")).to_have_count(1)
    await expect(page.get_by_text("No conversations yet.")).to_be_visible()
    fake.play(Script([delta(content="word")], end="hang"), refusal(401, "no"))
    asking = asyncio.ensure_future(editor.chat(conversation_id="first"))
    running = section(page, "Running now")
    await expect(running).to_contain_text("streaming")
    await expect(running).to_contain_text("fake:one")
    asking.cancel()
    await expect(running).to_contain_text("No request runs")
    await editor.chat(conversation_id="second")
    requests = page.locator("a.tile", has_text="Requests today")
    await expect(requests.locator(".figure")).to_have_text("2")
    errors = page.locator("a.tile[href='#/problems']")
    await expect(errors).to_contain_text("1")
    await expect(section(page, "Latest conversations").locator("li")).to_have_count(2)
    await requests.click()  # it leads where the same number stands
    await expect(page.locator(".health")).to_contain_text("2 requests today;")


async def test_keys_are_looked_for_once_and_again_on_demand(
    page: Page, watch: Watch
) -> None:
    keys = section(page, "Keys")
    await expect(keys.locator("li").first).to_contain_text("not set")
    row = {"upstream": "fake", "source": "vault", "from": "", "fingerprint": "1a2b"}
    await page.evaluate(
        "(detail) => dispatchEvent(new CustomEvent('byok-keys', { detail }))",
        {"keys": [row], "vault": "its lock"},
    )
    await open_panel(page, "search")
    await open_panel(page, "overview")
    await expect(keys.locator("li").first).to_contain_text("1a2b")
    await expect(keys).to_contain_text("The vault cannot be used: its lock.")
    await page.evaluate(
        "(detail) => dispatchEvent(new CustomEvent('byok-keys', { detail }))",
        {"keys": [], "vault": "its lock"},
    )
    await open_panel(page, "search")
    await open_panel(page, "overview")
    await expect(keys).to_contain_text("No upstream needs a key.")
    await expect(keys).not_to_contain_text("its lock")
    assert watch.requests.count("POST /ui/api/keys") == 1
    await page.get_by_role("button", name="Look again").click()
    await expect(page.locator("#status")).to_contain_text("looked up again")
    await expect(keys.locator("li").first).to_contain_text("not set")
    assert watch.requests.count("POST /ui/api/keys") == 2


def section(page: Page, title: str) -> Locator:
    """Return the part of the panel with that heading."""
    heading = page.get_by_role("heading", name=title, exact=True)
    return page.locator("section").filter(has=heading)


OFFICIAL = {"base_url": "http://127.0.0.1:1", "account": "official"}


@pytest.mark.parametrize("daemon_settings", [{"routing": {"official": OFFICIAL}}])
async def test_what_the_official_service_answers_is_in_the_language_of_the_page(
    page: Page,
) -> None:
    await expect(section(page, "Daemon")).to_contain_text("answers: account")
    await page.locator("#language").select_option("zh")
    await expect(page.locator(".facts")).to_contain_text("负责：账户")


async def test_capturing_is_started_told_and_stopped(
    page: Page, editor: Editor
) -> None:
    await page.keyboard.press("Control+k")
    await page.keyboard.type("capture")
    await page.keyboard.press("Enter")
    start = page.get_by_role("button", name="Start capture")
    await expect(start).to_be_focused()
    await expect(page.get_by_role("dialog")).to_contain_text("kept for a day")
    assert not (await editor.post("/byok/capture", {})).json["on"]
    assert await axe(page) == ""
    await start.press("Enter")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    stop = page.get_by_role("button", name="Stop capture")
    await expect(stop).to_have_count(1)  # where the user is
    assert (await editor.post("/byok/capture", {})).json["on"]
    await open_panel(page, "settings")
    await expect(stop).to_have_count(2)
    await expect(page.get_by_text("recorded")).to_have_count(1)  # said once
    await stop.last.click()
    await expect(page.locator(".capture")).to_have_count(0)
    await start.click()
    for panel in ("overview", "live", "usage"):
        await open_panel(page, panel)
        await expect(page.locator(".capture")).to_contain_text("on until ")
        await expect(stop).to_have_count(1)
    assert await axe(page) == ""
    await stop.click()
    await expect(page.locator("#status")).to_have_text("Capture: off")
    await expect(page.locator("h1")).to_be_focused()
    await expect(page.locator(".capture")).to_have_count(0)
    assert not (await editor.post("/byok/capture", {})).json["on"]
    await open_panel(page, "overview")
    await page.get_by_role("link", name="off", exact=True).click()
    await expect(page.locator("[data-name=capture]")).to_be_visible()


@pytest.mark.parametrize("daemon_settings", [{"upstreams": {"demo": {}}}])
async def test_the_demo_is_no_model_and_each_step_leads_there(page: Page) -> None:
    steps = section(page, "First steps")
    await expect(steps.locator("li.now")).to_contain_text("A model answers")
    await expect(steps.locator("li.done")).to_have_count(0)
    await expect(page.locator(".tile .spark")).to_have_count(0)  # they would be empty
    await steps.get_by_role("link", name="Connect an editor").click()
    await expect(page.locator(".sought")).to_contain_text("VS Code")
    await steps.get_by_role("link", name="Add upstream").click()
    await expect(page.get_by_role("dialog")).to_contain_text("Who serves the model?")
