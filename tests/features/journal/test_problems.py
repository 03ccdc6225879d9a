"""Failures by what they ask of the user, what goes on or is over; and repairs."""

from pathlib import Path
from typing import Any

import pytest

from byok.features.journal.problems import (
    Ending,
    MendedModel,
    find_mended,
    find_needs,
    weigh_errors,
)
from tests.fakes.journal_entries import NOW, entry, write_journal

BAD: dict[str, Any] = {"outcome": "failed", "error": "upstream_auth", "cost": 0}
BUSY = {**BAD, "error": "upstream_overloaded"}
AGAIN = {"attempts": 2, "retried": "upstream_down"}
LOST = {**BAD, "error": "upstream_not_found"}
END = NOW + 60


def weigh(folder: Path, *entries: Any) -> list[tuple[Any, ...]]:
    path = write_journal(folder / "journal.db", entries)
    groups = weigh_errors(path, NOW - 9999, END, {"one"})
    needs = {one.code for one in groups if one.weight == "needs_you"}
    assert find_needs(path, NOW - 9999, {"one"}) == needs
    return [
        (str(one.weight), one.code, one.requests, one.cured, one.goes_on)
        for one in groups
    ]


@pytest.mark.parametrize(
    ("entries", "groups"),
    [
        ([BAD, BAD], [("needs_you", "upstream_auth", 2, 0, True)]),
        # Another model of the upstream answers, so the key is good again.
        ([BAD, {"model": "other"}], [("look", "upstream_auth", 1, 1, False)]),
        ([BAD, {"upstream": "two"}], [("needs_you", "upstream_auth", 1, 0, True)]),
        ([{}, BAD], [("needs_you", "upstream_auth", 1, 0, True)]),
        ([BAD, {}, BAD], [("needs_you", "upstream_auth", 2, 1, True)]),
        # It proves nothing of a model that does not exist.
        ([LOST, {"model": "other"}], [("needs_you", "upstream_not_found", 1, 0, True)]),
        ([LOST, {}], [("look", "upstream_not_found", 1, 1, False)]),
        # The upstream is no longer among the settings.
        ([{**BAD, "upstream": "gone"}], [("look", "upstream_auth", 1, 0, True)]),
        ([BUSY], [("look", "upstream_overloaded", 1, 0, True)]),
        ([{**BAD, "error": "superseded"}], [("cured", "superseded", 1, 0, True)]),
        (
            [{**BAD, "error": "of_a_later_byok"}],
            [("look", "of_a_later_byok", 1, 0, True)],
        ),
        ([{"attempts": 3}], [("cured", "", 1, 1, False)]),
        (
            [{"attempts": 3, "retried": "upstream_cut upstream_down"}, AGAIN, AGAIN],
            [
                ("cured", "upstream_down", 2, 2, False),
                ("cured", "upstream_cut", 1, 1, False),
            ],
        ),
        ([{"outcome": "cancelled"}], [("cured", "", 1, 1, False)]),
        ([{"started": NOW - 99_999, **BAD}], []),
    ],
)
def test_a_failure_needs_its_user_until_the_upstream_answers_again(
    tmp_path: Path, entries: list[dict[str, Any]], groups: list[Any]
) -> None:
    rows = [entry(**{"started": NOW + n, **one}) for n, one in enumerate(entries)]
    assert weigh(tmp_path, *rows) == groups


def test_groups_come_by_weight_with_times_models_and_bars(tmp_path: Path) -> None:
    hour = 3600
    entries = [
        entry(started=END - 30 * hour, model="older", **BUSY),
        entry(started=END - 2.5 * hour, attempts=2, retried="upstream_cut"),
        entry(started=END - 1.5 * hour, **BUSY),
        entry(started=END - 0.5 * hour, **BUSY),
        entry(started=END - hour, upstream="", model="", **{**BAD, "error": "config"}),
    ]
    path = write_journal(tmp_path / "journal.db", entries)
    groups = weigh_errors(path, END - 48 * hour, END, {"one"})
    assert [one.weight for one in groups] == ["needs_you", "look", "cured"]
    first, second, third = groups
    assert (first.upstream, first.models) == ("", [])
    assert second.models == ["m", "older"]
    assert (second.requests, second.first, second.last) == (
        3,
        END - 30 * hour,
        END - 0.5 * hour,
    )
    assert second.bars == [0] * 9 + [1] + [0] * 13 + [2]
    assert third.ending is Ending.RETRIED
    assert [[one.number for one in group.examples] for group in groups] == [
        [5],
        [4, 3, 1],
        [2],
    ]


def failed(error: str, **fields: Any) -> dict[str, Any]:
    return {"outcome": "failed", "error": error, **fields}


MENDED = [
    entry(started=NOW, **failed("upstream_auth")),
    entry(started=NOW + 1),
    *(entry(started=NOW + 2 + n, **failed("rate_limited")) for n in range(7)),
    entry(started=NOW + 10, **failed("rate_limited"), model="n"),
    entry(started=NOW + 11, **failed("bad_body"), model="", upstream=""),
    entry(started=NOW + 12, repairs=3, attempts=2, request_id="mended"),
    entry(started=NOW + 13, loop="ended-failing-6", model="n", request_id="loop"),
    entry(started=NOW + 14, outcome="cancelled"),
    entry(started=NOW + 15, dropped_calls=1, notices=2, request_id="dropped"),
]


@pytest.fixture
def mended(tmp_path: Path) -> Path:
    return write_journal(tmp_path / "journal.db", MENDED)


def test_repairs_are_counted_by_model(mended: Path) -> None:
    found = find_mended(mended, NOW)
    assert found.requests == 14
    assert found.models == [
        MendedModel("byok:one:m", 12, 2, 3, 1, 2, 0, 1),
        MendedModel("byok:one:n", 2, 1, 0, 0, 0, 1, 0),
    ]
    ids = [stored.entry.request_id for stored in found.latest]
    assert ids == ["dropped", "loop", "mended"]


def test_only_what_began_since_then_counts(mended: Path) -> None:
    found = find_mended(mended, NOW + 14)
    assert found.requests == 2
    assert [m.mended for m in found.models] == [1]
