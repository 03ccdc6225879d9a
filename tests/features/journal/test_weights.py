"""Failures by what they ask of the user: what goes on, and what is over."""

from pathlib import Path
from typing import Any

import pytest

from byok.features.journal.weights import Ending, find_needs, weigh_errors
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
