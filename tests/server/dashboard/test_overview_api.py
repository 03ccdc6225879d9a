"""What the overview asks for: it asks no upstream by itself, and shows no key."""

import asyncio
import time
from typing import TYPE_CHECKING, Any, cast

import pytest

from byok.core.chat import Json
from byok.core.error_table import error_rows
from byok.core.platform.paths import find_paths
from byok.core.routing import Service
from byok.features.running import Features
from byok.server.dashboard.api import make_overview_handlers
from byok.server.dashboard.endpoint import PageRequest
from byok.server.dashboard.journal_api import JournalApi
from byok.server.endpoints import LocalHandler
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.dashboard import Page, age_confirmation, signed_in
from tests.fakes.journal_entries import entry, write_journal
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import FakeUpstream, dead_url

if TYPE_CHECKING:
    from byok.server.http.reply import HttpExchange

KEY = "sk-of-the-overview-0123456789"


async def settled(page: Page, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the first upstream once it is asked no more."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = (await page.call("upstreams", body))["upstreams"][0]
            body = None
            if not found["asking"] and found["age"] is not None:
                return dict(found)
            await asyncio.sleep(0.02)


async def test_the_state_tells_what_runs_and_since_when(page: Page) -> None:
    state = await page.call("state")
    assert (state["model"], state["reason"]) == (
        "byok:demo:echo",
        "chosen by --upstream",
    )
    assert state["seconds"] >= 0 < state["since"]
    assert state["features"]["capture"] == []
    assert state["official"]["base_url"] == ""
    assert state["features"]["caps"] == []
    assert state["settings"]["restart"] == []


@pytest.mark.case("B160")
async def test_capturing_is_told_stopped_and_started_with_a_new_code_only(
    client: Editor,
) -> None:
    page = await signed_in(client)
    assert not (await page.call("capture"))["on"]
    started = await page.call("capture", {"write": True})
    usual = (await client.post("/byok/capture", {"switch": "on"})).json
    assert started == usual
    age_confirmation(page)
    [row] = (await page.call("state"))["features"]["capture"]
    assert row["key"] == "capture.on"
    assert not (await page.call("capture-stop"))["on"]
    refused = await page.refused("capture", {"write": True, "switch": "on"})
    assert refused == (403, "dashboard_confirm")
    assert not (await page.call("capture", {"switch": "on"}))["on"]
    assert (await page.call("state"))["features"]["capture"] == []


async def test_opening_the_overview_asks_no_upstream_and_a_button_does(
    fake: FakeUpstream, client: Editor
) -> None:
    fake.models = ["one"]
    page = await signed_in(client)
    before = await settled(page)
    asked = len(fake.list_headers)
    for name in ("upstreams", "catalog", "state"):
        await page.call(name)
    assert len(fake.list_headers) == asked
    fake.models = ["one", "two"]
    after = await settled(page, {"anew": True})
    models = (await page.call("catalog"))["models"]
    assert (before["models"], after["models"]) == (1, 2)
    assert len(fake.list_headers) == asked + 1
    assert [model["id"] for model in models] == ["byok:fake:one", "byok:fake:two"]


async def test_an_upstream_tells_why_it_fails_without_its_key(
    fake: FakeUpstream,
) -> None:
    fake.models_error = "bad one {key} for you"
    environ = {"BYOK_KEY_FAKE": KEY}
    settings = settings_for(fake.url, type="openai", dialect="openai_chat")
    async with running(settings, environ=environ) as editor:
        page = await signed_in(editor)
        found = await settled(page)
        raw = (await page.raw("upstreams")).raw
    assert "bad one" in found["failure"]
    row = error_rows()[found["code"]]
    assert (found["what"], found["cures"]) == (row.what, [*row.cures])
    assert found["key_outside"]
    assert KEY.encode() not in raw
    assert found["type"] == "openai"
    assert found["base_url"] == fake.url


async def test_what_a_test_of_the_key_finds_is_known_from_then_on(
    fake: FakeUpstream, client: Editor
) -> None:
    page = await signed_in(client)
    await settled(page)
    fake.models_error = "no such key"
    refused = await page.raw("key-test", {"upstream": "fake"})
    assert refused.status >= 400
    fails = await settled(page)
    assert (fails["state"], fails["by_list"]) == ("fails", True)
    assert "no such key" in fails["failure"]
    assert not fails["failure"].startswith("fake")  # whose row says so
    again = await settled(page, {"anew": True})
    assert again["since"] == pytest.approx(fails["since"], abs=0.01)
    assert again["last"] > fails["last"]
    fake.models_error = ""
    assert (await page.call("key-test", {"upstream": "fake"}))["models"]
    answers = await settled(page)
    assert (answers["state"], answers["failure"]) == ("answers", "")


async def test_an_upstream_without_its_model_tells_which_setting_names_it(
    fake: FakeUpstream,
) -> None:
    gone = {"outcome": "failed", "error": "upstream_not_found", "upstream": "fake"}
    entries = [
        entry(started=time.time() - 9, model="other", **gone),
        entry(started=time.time() - 8, model="one", **gone),
    ]
    write_journal(find_paths().journal, entries)
    fake.models = ["two"]
    async with running(settings_for(fake.url, model="one")) as editor:
        found = await settled(await signed_in(editor))
    assert (found["state"], found["by_list"]) == ("fails", False)
    assert found["named_in"] == "upstreams.fake.model"


async def test_what_no_request_has_met_is_to_be_fixed_as_well() -> None:
    refused = {"outcome": "failed", "error": "upstream_auth", "upstream": "two"}
    write_journal(find_paths().journal, [entry(started=time.time() - 9, **refused)])
    section = settings_for(dead_url())["upstreams"]["fake"]
    settings = {"upstreams": dict.fromkeys(("one", "two", "three"), section)}
    async with running(settings, clock=lambda: time.time() + 9) as editor:
        page = await signed_in(editor)
        await settled(page)
        await editor.services.catalog.settle(PATIENCE)
        today, told = await page.call("today"), await page.call("problems")
    found = [(row["upstream"], row["code"], row["requests"]) for row in told["groups"]]
    unmet = {(name, "upstream_connect", 0) for name in ("one", "two", "three")}
    assert {*found} == {*unmet, ("two", "upstream_auth", 1)}
    assert found[0][1] == "upstream_auth"  # what a request has met comes first
    assert {row["weight"] for row in told["groups"]} == {"needs_you"}
    assert all(row["failure"] and row["cures"] for row in told["groups"][1:])
    assert len(today["needs_you"]) == 2  # each of them once
    assert all(row["what"] for row in today["needs_you"])


async def test_an_upstream_that_is_left_alone_says_for_how_long() -> None:
    proxy = dead_url().removesuffix("/v1")
    settings = settings_for("https://models.invalid/v1", proxy=proxy)
    async with running(settings, environ={"BYOK_KEY_FAKE": KEY}) as editor:
        page = await signed_in(editor)
        for _ in range(5):
            found = await settled(page, {"anew": True})
    assert found["failure"]
    assert 0 < found["rest"] <= 30


async def test_an_upstream_tells_since_when_it_answers_and_what_it_did_today(
    fake: FakeUpstream,
) -> None:
    noon = time.mktime((2026, 1, 14, 12, 0, 0, 0, 0, -1))
    bad: dict[str, Any] = {"outcome": "failed", "seconds": 1, "cost": 0}
    entries = [
        entry(seconds=1),
        entry(error="upstream_auth", **bad),
        entry(error="context_length", **bad),  # not its fault
        entry(error="upstream_quota", **bad),
        entry(upstream="two", cost=None, seconds=2.4, output_tokens=100),
        entry(upstream="two", error="context_length", **bad),
    ]
    rows = [one._replace(started=noon + n) for n, one in enumerate(entries)]
    write_journal(find_paths().journal, rows)
    section = settings_for(fake.url)["upstreams"]["fake"]
    settings = {"upstreams": {"one": section, "two": section, "openai": {}}}
    environ = {"BYOK_KEY_TWO": KEY}
    async with running(settings, environ=environ, clock=lambda: noon + 60) as editor:
        page = await signed_in(editor)
        errors = (await page.call("problems"))["groups"]
        fails = (await page.call("catalog"))["fails"]
        one, two, vendor = (await page.call("upstreams"))["upstreams"]
        write_journal(find_paths().journal, [rows[0]._replace(started=noon + 50)])
        later, *_ = (await page.call("upstreams"))["upstreams"]
    assert (one["at_vendor"], vendor["at_vendor"]) == (False, True)
    assert (one["state"], one["code"]) == ("fails", "upstream_quota")
    assert one["what"] == error_rows()["upstream_quota"].what
    assert (one["since"], one["last"]) == (noon + 2, noon + 4)
    assert (one["today"]["requests"], one["today"]["cost"]) == (4, 0.25)
    assert (two["state"], two["today"]["speed"]) == ("answers", 50)
    assert (two["today"]["cost"], two["today"]["unpriced"]) == (0, 1)
    assert (later["state"], later["since"]) == ("answers", noon + 51)
    told = {
        (row["upstream"], row["answers"], row["key_outside"])
        for row in errors
        if row["requests"]
    }
    assert told == {("one", False, False), ("two", True, True)}
    assert ("one" in fails, "two" in fails) == (True, False)  # openai has no key here


async def test_a_keyring_that_waits_for_its_user_is_asked_by_one_at_a_time(
    editor: Editor,
) -> None:
    unlocked, looks = asyncio.Event(), 0

    async def look(body: Json) -> Json:
        nonlocal looks
        looks += 1
        await unlocked.wait()
        return {"keys": [], "unread": []}

    local: dict[str, LocalHandler] = {Service.KEYS: look}
    control = editor.daemon.control
    journal = JournalApi(editor.services, Features({}), time.time)
    find = make_overview_handlers(local, editor.services, control, journal)["keys"]
    asked = PageRequest(cast("HttpExchange", None), {}, bool, lambda end: end)
    asking = [asyncio.ensure_future(find(asked)) for _ in range(5)]
    await asyncio.sleep(0)
    asking.pop().cancel()  # who leaves does not end it for the others
    await asyncio.sleep(0)
    unlocked.set()
    found = await asyncio.gather(*asking)
    assert looks == 1
    await find(asked)
    assert looks == 2
    assert found == [{"keys": [], "keyring": "", "vault": ""}] * 4
