"""What the page shows of the journal, through its interface."""

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from byok.core.platform.paths import find_paths
from byok.features.journal.schema import JOURNAL
from tests.fakes.daemon import running
from tests.fakes.dashboard import signed_in
from tests.fakes.journal_entries import NOW, entry, write_journal, write_version_1

NAMES = ["requests", "conversations", "conversation", "problems"]
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


async def ask(name: str, body: Any = None) -> Any:
    async with running(upstream="demo", clock=lambda: NOW + 99) as editor:
        return await (await signed_in(editor)).call(name, body)


async def test_requests_come_in_pages_with_all_their_columns() -> None:
    write_journal(find_paths().journal, ENTRIES)
    async with running(upstream="demo") as editor:
        page = await signed_in(editor)
        first = await page.call("requests", {"count": 2})
        rest = await page.call("requests", {"before": first["requests"][-1]["number"]})
        everything = await page.call("requests", {"everything": True})
        errors = await page.call("requests", {"errors": True})
        chat = await page.call("requests", {"conversation": "c0ffee-1"})
    assert [row["request_id"] for row in first["requests"]] == ["e", "c"]
    assert first["more"] is True
    assert first["requests"][0] == {"number": 5, **ENTRIES[4]._asdict()}
    assert [row["request_id"] for row in rest["requests"]] == ["b", "a"]
    assert rest["more"] is False
    assert [row["request_id"] for row in everything["requests"]] == [*"edcba"]
    assert [row["request_id"] for row in errors["requests"]] == ["e", "b"]
    assert [row["request_id"] for row in chat["requests"]] == ["b", "a"]


async def test_conversations_come_with_sums_the_latest_first() -> None:
    write_journal(find_paths().journal, ENTRIES)
    told = await ask("conversations", {"count": 2})
    assert [c["conversation"] for c in told["conversations"]] == [HOSTILE, "other"]
    assert (told["before"], told["keep_days"]) == (NOW + 20, 90)
    told = await ask("conversations", {"before": told["before"]})
    [last] = told["conversations"]
    assert (last["requests"], last["failed"], last["cost"]) == (2, 1, 0.5)
    assert (last["models"], told["before"]) == (["one:m"], None)


async def test_a_conversation_is_told_in_order_with_the_cures_of_its_errors() -> None:
    write_journal(find_paths().journal, ENTRIES)
    told = await ask("conversation", {"conversation": "c0ffee-1"})
    assert [row["request_id"] for row in told["requests"]] == ["a", "b"]
    assert told["sums"]["requests"] == 2
    assert (told["more"], told["previous"]) == (False, None)
    assert [*told["errors"]] == ["upstream_auth"]
    assert told["errors"]["upstream_auth"]["cures"]
    other = await ask("conversation", {"conversation": "nobody's"})
    assert (other["sums"], other["requests"]) == (None, [])


async def test_a_long_conversation_comes_in_pages_that_end_at_the_latest() -> None:
    turns = [entry(request_id=str(n), started=NOW + 10 * n) for n in range(450)]
    write_journal(find_paths().journal, turns)
    seen: list[str] = []
    async with running(upstream="demo") as editor:
        page = await signed_in(editor)
        asked: dict[str, Any] = {"conversation": "c0ffee-1"}
        while True:
            told = await page.call("conversation", asked)
            seen = [row["request_id"] for row in told["requests"]] + seen
            first = told["requests"][0]
            if not told["more"]:
                break
            assert told["previous"] == first["started"] - 10 + 2.5
            asked["before"] = first["number"]
    assert seen == [str(n) for n in range(450)]


async def test_problems_have_the_words_of_byok_explain() -> None:
    write_journal(find_paths().journal, ENTRIES)
    told = await ask("problems", {"days": 1})
    [error] = told["errors"]
    assert (error["code"], error["requests"], error["last"]) == (
        "upstream_auth",
        2,
        NOW + 40,
    )
    assert error["group"] == "Keys"
    assert error["what"].endswith(".")
    assert error["cures"]
    assert [row["request_id"] for row in error["examples"]] == ["e", "b"]
    assert [model["repairs"] for model in told["models"]] == [1]
    assert [row["request_id"] for row in told["mended"]] == ["c"]


@pytest.mark.parametrize(("days", "count"), [(1, 1), (2, 2), (3650, 3), (None, 2)])
async def test_problems_are_those_of_the_last_days(
    days: int | None, count: int
) -> None:
    old = [entry(started=NOW - 86_400 * ago, **FAILED) for ago in (0, 1, 8)]
    write_journal(find_paths().journal, old)
    told = await ask("problems", {} if days is None else {"days": days})
    assert [error["requests"] for error in told["errors"]] == [count]


async def test_an_error_that_this_version_does_not_know_has_its_code_only() -> None:
    row = entry(outcome="failed", error="of_a_later_byok")
    write_journal(find_paths().journal, [row])
    [error] = (await ask("problems"))["errors"]
    assert (error["code"], "what" in error) == ("of_a_later_byok", False)


async def test_without_a_journal_there_is_nothing_to_show() -> None:
    async with running(upstream="demo") as editor:
        page = await signed_in(editor)
        assert await page.call("requests") == {"requests": [], "more": False}
        assert (await page.call("conversations"))["conversations"] == []
        asked = {"conversation": "c0ffee-1"}
        assert (await page.call("conversation", asked))["sums"] is None
        assert (await page.call("problems"))["models"] == []


async def test_an_older_versions_journal_is_shown() -> None:
    paths = find_paths()
    paths.journal.parent.mkdir(parents=True)
    write_version_1(paths.journal, ENTRIES)
    told = await ask("conversation", {"conversation": "c0ffee-1"})
    assert [row["tool_calls"] for row in told["requests"]] == ["", ""]


def damage() -> None:
    """Write a file that is no journal."""
    journal = find_paths().journal
    journal.parent.mkdir(parents=True)
    journal.write_bytes(b"no database at all" * 500)


def become_newer() -> None:
    """Write a journal of a later version."""
    journal = write_journal(find_paths().journal, ENTRIES)
    with closing(sqlite3.connect(journal)) as db:
        db.execute(f"PRAGMA user_version = {JOURNAL.version + 1}")


def lose_a_column() -> None:
    """Write a journal that lacks a column."""
    journal = write_journal(find_paths().journal, ENTRIES)
    with closing(sqlite3.connect(journal)) as db:
        db.execute("ALTER TABLE request DROP COLUMN cost")


@pytest.mark.parametrize(
    ("name", "spoil", "code"),
    [
        *((name, damage, "corrupt_data") for name in [*NAMES, *SUMMED]),
        *((name, become_newer, "newer_data") for name in [*NAMES, *SUMMED]),
        *((name, lose_a_column, "corrupt_data") for name in NAMES),
    ],
)
async def test_a_journal_that_cannot_be_read_is_a_sentence(
    name: str, spoil: Any, code: str
) -> None:
    spoil()
    async with running(upstream="demo") as editor:
        page = await signed_in(editor)
        body = {"conversation": "c0ffee-1", "range": "day", "by": "model"}
        answer = await page.raw(name, body)
    assert answer.status == 503
    assert answer.json["error"]["code"] == code
    assert str(find_paths().journal) in answer.json["error"]["message"]
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
        assert (await page.call("requests"))["requests"][-1]["number"] == 1
        told = {name: await page.call(name) for name in ("conversations", "problems")}
        for by in ("model", "client", "conversation", "day"):
            assert (await page.call("usage", {"by": by, "days": 2}))["rows"]
        for by in ("model", "client", "purpose"):
            await page.call("series", {"range": "week", "by": by})
        chat = await page.call("conversation", {"conversation": "c0ffee-1"})
    assert told["problems"]["damaged"] == 1
    assert len(told["conversations"]["conversations"]) == 3
    assert [row["request_id"] for row in chat["requests"]] == ["a"]


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("requests", {"count": 201}),
        ("requests", {"before": 2**63}),
        ("requests", {"errors": 1}),
        ("requests", {"everything": "yes"}),
        ("requests", {"conversation": "c" * 20_001}),
        ("conversations", {"count": 0}),
        ("conversations", {"before": "now"}),
        ("conversation", {}),
        ("conversation", {"conversation": ["a"]}),
        ("conversation", {"conversation": "a", "before": -1}),
        ("problems", {"days": 0}),
        ("problems", {"days": 1e3}),
    ],
    ids=str,
)
async def test_a_field_of_another_kind_is_refused(name: str, body: Any) -> None:
    async with running(upstream="demo") as editor:
        page = await signed_in(editor)
        assert await page.refused(name, body) == (422, "bad_field")
