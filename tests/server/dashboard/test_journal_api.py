"""What the page shows of the journal and of usage, through its interface."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from byok.core.errors import NotReady
from byok.core.platform.paths import find_paths
from byok.features.journal.schema import JOURNAL
from byok.features.journal.usage import UsageRow
from byok.server.dashboard.journal_api import RANGES, read_in_thread
from tests.fakes.daemon import running
from tests.fakes.dashboard import Page, signed_in
from tests.fakes.journal_entries import NOW, entry, write_journal

NAMES = ["largest", "conversations", "conversation", "problems"]
SUMMED = ["series", "usage"]
FAILED = {"outcome": "failed", "error": "upstream_auth"}
HOSTILE = "<img src=x onerror=alert(1)>\x1b[2J\u202e"
ENTRIES = [
    entry(request_id="a", started=NOW),
    entry(request_id="b", started=NOW + 10, tool_calls="view x3", **FAILED),
    entry(request_id="c", started=NOW + 20, conversation="other", repairs=1),
    entry(request_id="d", started=NOW + 30, purpose="", model="", conversation=""),
    entry(
        request_id="e", started=NOW + 40, model=HOSTILE, conversation=HOSTILE, **FAILED
    ),
]


async def ask(
    name: str, body: Any = None, clock: Callable[[], float] = lambda: NOW + 99
) -> Any:
    async with running(upstream="demo", clock=clock) as editor:
        return await (await signed_in(editor)).call(name, body)


async def test_the_slowest_and_the_costliest_requests_of_today_come_first() -> None:
    times = {"a": 3.0, "b": 9.0, "c": 5.0}
    rows = [
        entry(request_id=n, started=NOW, seconds=s, cost=0.5 if n == "c" else None)
        for n, s in times.items()
    ]
    rows += [
        entry(request_id="path", started=NOW, seconds=99.0, purpose="", model=""),
        entry(request_id="yesterday", started=NOW - 86_400, seconds=99.0),
        entry(request_id="cut", started=NOW, seconds=99.0, **FAILED),
    ]
    write_journal(find_paths().journal, rows)
    told = (await ask("largest"))["requests"]
    assert [row["request_id"] for row in told] == ["b", "c", "a"]
    dearest = await ask("largest", {"sort": "cost"})
    assert [row["request_id"] for row in dearest["requests"]] == ["c", "cut"]
    assert dearest["errors"]["upstream_auth"]["what"]
    used = {"cached": pytest.approx(1000 / 1200), "note": None}
    assert told[0] == {"number": 2, **rows[1]._asdict(), **used}


async def test_what_stands_out_of_a_day_ends_at_its_midnight() -> None:
    midnight = time.mktime((2026, 1, 14, 0, 0, 0, 0, 0, -1))  # by the local clock
    moments = {"a": midnight - 1, "b": midnight, "c": midnight + 23 * 3600}
    rows = [
        entry(request_id=n, started=at, **(FAILED if n != "c" else {}))
        for n, at in moments.items()
    ]
    write_journal(find_paths().journal, rows)
    async with running(upstream="demo", clock=lambda: midnight + 86_400) as editor:
        page = await signed_in(editor)

        async def found(by: str, day: str) -> str:
            told = await page.call("largest", {"sort": by, "day": day})
            return "".join(row["request_id"] for row in told["requests"])

        assert await found("failed", "2026-01-13") == "a"
        assert await found("failed", "2026-01-14") == "b"
        assert await found("cost", "2026-01-14") == "cb"
        assert await found("seconds", "2026-01-14") == "c"
        assert await found("cost", "") == ""  # it is the 15th
        for day in ("yesterday", "9999-12-31"):
            wrong = await page.refused("largest", {"sort": "cost", "day": day})
            assert wrong == (422, "bad_field"), day


async def test_conversations_come_with_sums_the_latest_first() -> None:
    write_journal(find_paths().journal, ENTRIES)
    told = await ask("conversations", {"count": 2})
    assert [c["conversation"] for c in told["conversations"]] == [HOSTILE, "other"]
    assert (told["more"], told["keep_days"]) == (True, 90)
    told = await ask("conversations", {"offset": 2})
    [last] = told["conversations"]
    assert (last["requests"], last["failed"], last["cost"]) == (2, 1, 0.5)
    assert (last["models"], told["more"]) == (["byok:one:m"], False)


async def test_conversations_are_found_by_what_the_page_filters_by() -> None:
    write_journal(find_paths().journal, ENTRIES)
    async with running(upstream="demo") as editor:
        page = await signed_in(editor)
        asked = {"sort": "cost", "find": "SHOP", "client": "vscode", "errors": True}
        told = await page.call("conversations", {**asked, "count": 1})
        next_page = await page.call("conversations", {**asked, "offset": 1})
        wrong = await page.refused("conversations", {"least_cost": -1})
        odd = await page.refused("conversations", {"sort": "1; DROP TABLE request"})
    [first] = told["conversations"]
    [second] = next_page["conversations"]
    assert (first["conversation"], first["folder"]) == ("c0ffee-1", "shop")
    assert first["cached"] == pytest.approx(2000 / 2400)
    assert second["conversation"] == HOSTILE
    assert (told["more"], next_page["more"], told["known"]) == (True, False, 3)
    assert (told["total"]["conversations"], told["total"]["cost"]) == (2, 0.75)
    assert told["clients"] == [{"client": "vscode", "conversations": 3}]
    assert wrong == odd == (422, "bad_field")


async def test_a_conversation_is_told_in_order_with_the_cures_of_its_errors() -> None:
    write_journal(find_paths().journal, ENTRIES)
    told = await ask("conversation", {"conversation": "c0ffee-1"})
    assert [row["request_id"] for row in told["requests"]] == ["a", "b"]
    assert told["sums"]["requests"] == 2
    assert (told["more"], told["previous"]) == (False, None)
    assert [*told["errors"]] == ["upstream_auth"]
    assert told["errors"]["upstream_auth"]["cures"]
    [first, _] = told["requests"]
    assert first["note"] is None
    assert first["cached"] == pytest.approx(1000 / 1200)
    assert told["dearest"] == {"number": 1, "cost": 0.25, "turn": 1, "share": 0.5}
    other = await ask("conversation", {"conversation": "nobody's"})
    assert (other["sums"], other["requests"], other["dearest"]) == (None, [], None)


async def test_a_turn_whose_prompt_had_expired_has_a_note() -> None:
    turns = [entry(started=NOW), entry(started=NOW + 900, cache_read_tokens=0)]
    write_journal(find_paths().journal, turns)
    told = await ask("conversation", {"conversation": "c0ffee-1"})
    note = {"pause": 897.5, "tokens": 1000, "extra_cost": None}
    assert [turn["note"] for turn in told["requests"]] == [None, note]
    [listed] = (await ask("conversations"))["conversations"]
    assert listed["expired"] == {"times": 1, "extra_cost": None}
    sums = {"read": 1000, "unpriced": 1000, "losses": 1, "lost": 1000}
    assert sums.items() <= told["cache"].items()


async def test_errors_come_by_weight_with_the_words_of_byok_explain() -> None:
    failed = [entry(started=NOW + n, upstream="demo", **FAILED) for n in range(2)]
    write_journal(find_paths().journal, [*failed, ENTRIES[2]])
    async with running(upstream="demo", clock=lambda: NOW + 99) as editor:
        page = await signed_in(editor)
        told, today = await page.call("problems"), await page.call("today")
    [group] = told["groups"]
    assert len(today["needs_you"]) == 1
    assert (group["weight"], group["ending"], group["code"], group["group"]) == (
        "needs_you",
        "failed",
        "upstream_auth",
        "keys",
    )
    assert group["cures"]
    assert (group["upstream"], group["models"]) == ("demo", ["m"])
    assert (group["requests"], group["cured"], group["goes_on"]) == (2, 0, True)
    assert sum(group["bars"]) == 2
    assert [row["number"] for row in group["examples"]] == [2, 1]
    assert [model["repairs"] for model in told["models"]] == [1]
    assert [row["request_id"] for row in told["mended"]] == ["c"]


async def test_an_error_of_a_model_tells_which_setting_names_it() -> None:
    gone = {**FAILED, "error": "upstream_not_found"}
    settings: dict[str, Any] = {
        "upstreams": {name: {"type": "demo"} for name in ("a", "b", "c", "d")},
        "routing": {
            "aliases": {"fast": "byok:a:one"},
            "models": {"title": "byok:b:one"},
            "fallback": {"chat": ["fast", "byok:c:one"]},
        },
    }
    names = settings["upstreams"]
    entries = [entry(**{**gone, "upstream": name, "model": "one"}) for name in names]
    write_journal(find_paths().journal, entries)
    async with running(settings, clock=lambda: NOW + 99) as editor:
        told = await (await signed_in(editor)).call("problems")
    assert {one["upstream"]: one["named_in"] for one in told["groups"]} == {
        "a": "routing.aliases",
        "b": "routing.models.title",
        "c": "routing.fallback.chat",
        "d": "",
    }


@pytest.mark.parametrize(("days", "count"), [(1, 1), (2, 2), (3650, 3), (None, 2)])
async def test_problems_are_those_of_the_last_days(
    days: int | None, count: int
) -> None:
    old = [entry(started=NOW - 86_400 * ago, **FAILED) for ago in (0, 1, 8)]
    write_journal(find_paths().journal, old)
    told = await ask("problems", {} if days is None else {"days": days})
    assert [group["requests"] for group in told["groups"]] == [count]


async def test_an_error_that_this_version_does_not_know_has_its_code_only() -> None:
    row = entry(outcome="failed", error="of_a_later_byok")
    write_journal(find_paths().journal, [row])
    [error] = (await ask("problems"))["groups"]
    assert (error["code"], "what" in error) == ("of_a_later_byok", False)


async def test_without_a_journal_there_is_nothing_to_show(page: Page) -> None:
    assert await page.call("largest") == {"requests": [], "errors": {}}
    assert (await page.call("conversations"))["conversations"] == []
    asked = {"conversation": "c0ffee-1"}
    assert (await page.call("conversation", asked))["sums"] is None
    assert (await page.call("problems"))["models"] == []
    told = await page.call("today")
    assert (told["requests"], told["cost"], told["speed"]) == (0, 0, None)
    assert set(told["hours"]["requests"]) == {0}
    assert told["caps"] == []


def damage(journal: Path) -> None:
    """Make a file of it that is no journal."""
    journal.write_bytes(b"no database at all" * 500)


def become_newer(journal: Path) -> None:
    """Make it one of a later version."""
    with closing(sqlite3.connect(journal)) as db:
        db.execute(f"PRAGMA user_version = {JOURNAL.version + 1}")


def lose_a_column(journal: Path) -> None:
    """Let it lack a column."""
    with closing(sqlite3.connect(journal)) as db:
        db.execute("ALTER TABLE request DROP COLUMN cost")


@pytest.mark.parametrize(
    ("spoil", "names", "code"),
    [
        (damage, [*NAMES, *SUMMED], "corrupt_data"),
        (become_newer, [*NAMES, *SUMMED], "newer_data"),
        (lose_a_column, NAMES, "corrupt_data"),
    ],
)
async def test_a_journal_that_cannot_be_read_is_a_sentence(
    spoil: Callable[[Path], None], names: list[str], code: str
) -> None:
    path = write_journal(find_paths().journal, ENTRIES)
    spoil(path)
    body = {"conversation": "c0ffee-1", "range": "day", "by": "model"}
    async with running(upstream="demo") as editor:
        page = await signed_in(editor)
        for name in names:
            answer = await page.raw(name, body)
            assert (answer.status, answer.json["error"]["code"]) == (503, code), name
            assert str(path) in answer.json["error"]["message"]
            assert answer.json["error"]["hint"]


async def test_damaged_requests_are_left_out_and_counted() -> None:
    journal = write_journal(find_paths().journal, ENTRIES)
    with closing(sqlite3.connect(journal)) as db, db:
        db.execute(
            "UPDATE request SET client = x'ff', conversation = x'00', error = 7, "
            "model = x'fe', seconds = 'long', started = started + 1 WHERE id = 2"
        )
    async with running(upstream="demo", clock=lambda: NOW + 99) as editor:
        page = await signed_in(editor)
        assert 2 not in {
            one["number"] for one in (await page.call("largest"))["requests"]
        }
        told = {name: await page.call(name) for name in ("conversations", "problems")}
        for by in ("model", "day"):
            assert (await page.call("usage", {"by": by, "days": 2}))["rows"]
        for by in ("model", "client", "purpose"):
            await page.call("series", {"range": "week", "by": by})
        chat = await page.call("conversation", {"conversation": "c0ffee-1"})
    assert told["problems"]["damaged"] == 1
    assert len(told["conversations"]["conversations"]) == 3
    assert [row["request_id"] for row in chat["requests"]] == ["a"]


async def test_a_journal_that_the_system_refuses_may_be_read_later() -> None:
    def fail() -> None:
        raise PermissionError(13, "Permission denied")

    with pytest.raises(NotReady, match="Permission denied"):
        await read_in_thread(find_paths().journal, fail)


DAY = 86_400
SUMS = {*UsageRow._fields} - {"key"}


def fill(*ages: float, **fields: Any) -> None:
    """Write a request of each age in days."""
    now = time.time()
    entries = [entry(started=now - age * DAY, **fields) for age in ages]
    write_journal(find_paths().journal, entries)


@pytest.mark.parametrize(
    ("wanted", "step", "buckets", "counted"),
    [
        ("day", "hour", range(24, 25), 1),
        ("week", "six_hours", range(25, 30), 2),
        ("month", "day", range(30, 31), 3),
        ("quarter", "week", range(13, 15), 4),
    ],
)
async def test_a_range_is_in_steps_up_to_now(
    wanted: str, step: str, buckets: range, counted: int
) -> None:
    fill(0, 4, 20, 80, 100)
    told = await ask("series", {"range": wanted, "by": "model"}, time.time)
    assert (told["range"], told["step"], told["keeps"]) == (wanted, step, True)
    assert len(told["buckets"]) in buckets
    assert told["total"]["requests"] == counted
    assert sum(bucket["requests"] for bucket in told["buckets"]) == counted
    assert any(bucket["requests"] for bucket in told["buckets"][-2:])
    begins = [bucket["begin"] for bucket in told["buckets"]]
    assert begins == sorted(begins)
    assert [*RANGES] == ["day", "week", "month", "this_month", "quarter"]


async def test_this_month_is_that_of_the_calendar() -> None:
    now = time.mktime((2026, 11, 10, 2, 30, 0, 0, 0, -1))  # by the local clock
    begin = time.mktime((2026, 11, 1, 0, 0, 0, 0, 0, -1))
    moments = (begin - 1, begin, begin + 60, now - 60)
    entries = [entry(started=moment) for moment in moments]
    write_journal(find_paths().journal, entries)
    async with running(upstream="demo", clock=lambda: now) as editor:
        told = await (await signed_in(editor)).call("series", {"range": "this_month"})
    assert (told["total"]["requests"], len(told["buckets"])) == (3, 10)
    days = [(day["key"], day["requests"]) for day in told["days"]]
    assert days == [("2026-11-01", 2), ("2026-11-10", 1)]


async def test_a_period_is_the_same_on_every_panel() -> None:
    """Whoever looks up a failure of Cost among the errors finds it."""
    now = time.mktime((2026, 1, 14, 2, 30, 0, 0, 0, -1))  # by the local clock
    entries = [entry(started=now - age * 1800, **FAILED) for age in range(1500)]
    write_journal(find_paths().journal, entries)
    async with running(upstream="demo", clock=lambda: now) as editor:
        page = await signed_in(editor)
        for wanted, days in (("day", 1), ("week", 7), ("month", 30)):
            total = (await page.call("series", {"range": wanted}))["total"]
            [group] = (await page.call("problems", {"days": days}))["groups"]
            assert total["requests"] == group["requests"], wanted
            assert sum(group["bars"]) == group["requests"]


async def test_a_bucket_has_all_sums_its_parts_and_percentiles() -> None:
    fill(0, client=HOSTILE, cost=None)
    told = await ask("series", {"range": "day", "by": "client"}, time.time)
    assert (told["names"], told["others"]) == ([HOSTILE], False)
    [last] = (bucket for bucket in told["buckets"] if bucket["requests"])
    own = {"begin", "local", "parts", "first_byte", "seconds"}
    assert {*last} == SUMS | own
    assert last["parts"] == [{name: last[name] for name in SUMS}]
    assert last["first_byte"] == {"median": 0.4, "high": 0.4}
    assert (last["unpriced"], last["cost"], last["cache_read_tokens"]) == (1, 0, 1000)
    assert (
        time.strftime("%Y-%m-%dT%H:%M", time.localtime(last["begin"]))
        == (last["local"])
    )


async def test_that_nothing_new_is_counted_is_told() -> None:
    async with running({"journal": {"keep_days": 0}}, upstream="demo") as editor:
        told = await (await signed_in(editor)).call("series", {"range": "day"})
    assert told["keeps"] is False


@pytest.mark.parametrize(
    ("by", "key"),
    [("model", "byok:one:m"), ("day", None)],
)
async def test_usage_is_summed_by_each_group(by: str, key: str | None) -> None:
    fill(0, 0, 3)
    told = await ask("usage", {"by": by, "days": 2}, time.time)
    assert told["more"] == 0
    [row] = told["rows"]
    assert row["key"] == key or (by == "day" and row["key"].startswith("20"))
    assert {*row} == SUMS | {"key"}
    assert row["requests"] == 2


async def test_today_is_summed_by_the_hour_beside_yesterday_and_the_cap() -> None:
    now = time.mktime((2026, 1, 14, 2, 30, 0, 0, 0, -1))  # by the local clock
    hour = 3600
    write_journal(
        find_paths().journal,
        [
            entry(started=now - 26 * hour, cost=9),
            entry(started=now - 20 * hour),  # later than now, the day before
            entry(started=now - 2 * hour, seconds=2.4, output_tokens=100),
            entry(started=now - 2 * hour, cost=None, output_tokens=None),
            entry(started=now - 60, model="", upstream="", cost=0, **FAILED),
            entry(started=now - 60, seconds=5.4, cost=0.5, **FAILED),
        ],
    )
    settings = {"caps": {"usd_per_day": 10, "usd_per_conversation": 5}}
    async with running(settings, upstream="demo", clock=lambda: now) as editor:
        told = await (await signed_in(editor)).call("today")
    assert (told["requests"], told["yesterday"], told["errors"]) == (3, 1, 2)
    assert (told["cost"], told["unpriced"], told["speed"]) == (0.75, 1, 50)
    assert told["hours"] == {
        "requests": [2, 0, 1],
        "cost": [0.25, 0, 0.5],
        "errors": [0, 0, 2],
        "speed": [50, None, None],
    }
    [cap] = told["caps"]
    assert (cap["name"], cap["used"], cap["most"]) == ("usd_per_day", 0.75, 10)


async def test_errors_are_told_in_the_language_of_the_page() -> None:
    write_journal(find_paths().journal, [entry(started=NOW, **FAILED)])
    async with running(upstream="demo", clock=lambda: NOW + 99) as editor:
        page = await signed_in(editor)
        told = {}
        for language in ("zh-CN", "xx", "en"):
            page.language = language
            [row] = (await page.call("problems"))["groups"]
            refused = (await page.raw("conversation", {})).json["error"]
            told[language] = [row["what"], *row["cures"], refused["message"]]
    assert told["xx"] == told["en"]
    assert all(line.isascii() for line in told["en"])
    assert not any(line.isascii() for line in told["zh-CN"])
