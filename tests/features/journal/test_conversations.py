"""Conversations: their sums, the latest first, in pages."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from byok.features.journal.conversations import (
    ConversationQuery,
    ConversationReader,
    FoundSums,
    find_dearest,
    latest_conversations,
    sum_requests,
)
from tests.fakes.journal_entries import NOW, entry, write_journal

LOCAL = {"purpose": "", "model": "", "upstream": "", "attempts": 0, "cost": 0.0}
BAD = {"outcome": "failed", "error": "upstream_auth"}
_CACHES = (("told", 0), ("untold", None))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_journal(
        tmp_path / "journal.db",
        [
            entry(conversation="a", started=NOW, repairs=2),
            entry(conversation="b", started=NOW + 1),
            entry(conversation="", started=NOW + 2),
            entry(conversation="c", started=NOW + 3, **LOCAL),
            entry(
                conversation="a",
                started=NOW + 4,
                outcome="failed",
                error="upstream_auth",
                input_tokens=None,
                output_tokens=None,
                cost=None,
                model="other",
                dropped_calls=1,
            ),
            entry(conversation="a", started=NOW + 5),
            entry(conversation="d", started=NOW + 6),
        ],
    )


def test_conversations_are_added_up(path: Path) -> None:
    found = sum_requests(path, "a")
    assert found is not None
    assert found._asdict() == {
        "conversation": "a",
        "first": NOW,
        "last": NOW + 7.5,
        "requests": 3,
        "seconds": 7.5,
        "failed": 1,
        "input_tokens": 2400,
        "output_tokens": 60,
        "cache_read_tokens": 3000,
        "cache_input_tokens": 2400,
        "cost": 0.5,
        "unpriced": 1,
        "repairs": 2,
        "dropped_calls": 1,
        "client": "vscode/0.600.1",
        "folder": "shop",
        "models": ("byok:one:m", "byok:one:other"),
    }


def test_a_cache_that_nobody_told_of_is_not_an_empty_one(tmp_path: Path) -> None:
    told, untold = (entry(conversation=n, cache_read_tokens=r) for n, r in _CACHES)
    path = write_journal(tmp_path / "journal.db", [told, untold])
    found = [sum_requests(path, name) for name, _ in _CACHES]
    assert [sums and sums.cache_read_tokens for sums in found] == [0, None]


def test_what_asked_no_model_has_no_price_that_could_be_known(tmp_path: Path) -> None:
    failed = {"outcome": "failed", "cost": None, "conversation": "a"}
    turns = [entry(model=model, **failed) for model in ("m", "")]
    path = write_journal(tmp_path / "journal.db", turns)
    page = ConversationReader(path).read(ConversationQuery(), 0, 1)
    sums = sum_requests(path, "a")
    assert sums and page.found
    assert (sums.requests, sums.unpriced, page.found.unpriced) == (2, 1, 1)


def test_a_model_that_answered_is_named_before_one_that_failed(tmp_path: Path) -> None:
    asked = entry(conversation="a", model="gone", outcome="failed", cost=None)
    path = write_journal(tmp_path / "journal.db", [asked, asked])
    reader = ConversationReader(path)
    for models in (["byok:one:gone"], ["byok:one:m", "byok:one:gone"]):
        [read] = reader.read(ConversationQuery(), 0, 1).conversations
        assert [*read.models] == models
        assert read == sum_requests(path, "a")
        write_journal(path, [entry(conversation="a")])


@pytest.mark.parametrize("name", ["", "x", "c", "a' OR 1 --"])
def test_a_conversation_without_questions_has_no_sums(path: Path, name: str) -> None:
    assert sum_requests(path, name) is None


def test_the_latest_conversations_come_first(path: Path) -> None:
    found = latest_conversations(path, 10)
    # What only asked byok itself is left out.
    assert [sums.conversation for sums in found] == ["d", "a", "b"]
    assert found[1] == sum_requests(path, "a")


TURNS = [
    entry(conversation="a", started=NOW, cost=1, folder="\u00c4tlas", client="cli/1"),
    entry(conversation="a", started=NOW + 9, cost=None, model="Larch", client="cli/1"),
    entry(
        conversation="b",
        started=NOW + 1,
        cost=3,
        folder="\u6570\u636e",
        output_tokens=0,
    ),
    entry(conversation="c", started=NOW + 2, cost=0, folder="", client="", **BAD),
    entry(conversation="d", started=NOW + 3, cost=2, folder="shop", client="cli2/1"),
    entry(conversation="d", started=NOW + 4, cost=0, folder=""),
    entry(conversation="d", started=NOW + 5, cost=0, folder="", **BAD),
    entry(conversation="d", started=NOW + 6, cost=0, folder="", **BAD),
]


def find(path: Path, offset: int = 0, count: int = 9, **asked: Any) -> str:
    page = ConversationReader(path).read(ConversationQuery(**asked), offset, count)
    return "".join(sums.conversation for sums in page.conversations)


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ({}, "adcb"),
        ({"descending": False}, "bcda"),
        ({"sort": "start"}, "dcba"),
        ({"sort": "cost"}, "bdac"),
        ({"sort": "turns"}, "dacb"),
        ({"sort": "tokens"}, "dacb"),
        ({"sort": "errors"}, "dcab"),
        ({"sort": "folder", "descending": False}, "dabc"),
        ({"offset": 1, "count": 2}, "dc"),
        ({"words": "\u00e4tl"}, "a"),
        ({"words": "LARCH"}, "a"),
        ({"words": "\u6570"}, "b"),
        ({"words": "byok:one:m"}, "adcb"),
        ({"words": "%' OR 1 --"}, ""),
        ({"client": "cli"}, "a"),
        ({"least_cost": 2}, "db"),
        ({"failed": True}, "dc"),
        ({"failed": True, "least_cost": 1}, "d"),
    ],
)
def test_conversations_are_sorted_and_found(
    tmp_path: Path, asked: dict[str, Any], wanted: str
) -> None:
    path = write_journal(tmp_path / "journal.db", TURNS)
    assert find(path, **asked) == wanted


def test_what_is_found_is_added_up_as_a_whole(tmp_path: Path) -> None:
    path = write_journal(tmp_path / "journal.db", TURNS)
    page = ConversationReader(path).read(ConversationQuery(least_cost=1), 0, 1)
    assert page.found == FoundSums(3, 7, 2, 8400, 180, 6, 1)
    assert page.known == 4
    assert page.clients == [("vscode", 2), ("cli", 1)]
    [sums] = page.conversations
    assert sums == sum_requests(path, "a")


def test_new_requests_are_added_and_those_that_are_gone_taken_out(
    tmp_path: Path,
) -> None:
    path = write_journal(tmp_path / "journal.db", TURNS)
    reader = ConversationReader(path)

    def costs() -> dict[str, float]:
        page = reader.read(ConversationQuery(sort="start"), 0, 9)
        return {sums.conversation: sums.cost for sums in page.conversations}

    assert costs() == {"d": 2, "c": 0, "b": 3, "a": 1}
    write_journal(path, [entry(conversation=name, cost=4) for name in "ae"])
    assert costs() == {"d": 2, "c": 0, "b": 3, "e": 4, "a": 5}
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM request WHERE id < 4")
    assert costs() == {"d": 2, "c": 0, "e": 4, "a": 4}
    path.unlink()
    assert costs() == {}


def test_a_reader_is_behind_until_it_has_read_many_new_requests(path: Path) -> None:
    reader = ConversationReader(path, many=3)
    assert reader.is_behind()
    reader.read(ConversationQuery(), 0, 1)
    assert not reader.is_behind()


def test_the_dearest_turn_is_found(tmp_path: Path) -> None:
    turns = [
        entry(started=NOW + 1, cost=0.1),
        entry(started=NOW, cost=None),
        entry(started=NOW + 3, cost=0.9),
        entry(started=NOW + 2, cost=0.5),
        entry(started=NOW + 4, conversation="other", cost=7),
    ]
    path = write_journal(tmp_path / "journal.db", turns)
    assert find_dearest(path, "c0ffee-1") == (3, 0.9, 4)
    assert find_dearest(path, "nobody's") is None
