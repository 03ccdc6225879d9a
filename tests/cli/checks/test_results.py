"""What checks find, and the report as JSON."""

import pytest

from byok import __version__
from byok.cli.checks.results import (
    CheckResult,
    CheckRow,
    CheckState,
    count_states,
    doubtful,
    good,
    skip,
    worst_state,
    write_report,
    wrong,
)


@pytest.mark.parametrize(
    ("result", "state"),
    [
        (good("x"), CheckState.OK),
        (doubtful("x", "y"), CheckState.WARNING),
        (wrong("x", "y"), CheckState.FAILURE),
        (skip("x"), CheckState.NOT_CHECKED),
    ],
    ids=str,
)
def test_a_result_has_its_state_and_text(
    result: CheckResult, state: CheckState
) -> None:
    assert (result.state, result.found) == (state, "x")


def test_what_is_not_ok_has_a_cure() -> None:
    assert doubtful("x", "y").cure == wrong("x", "y").cure == "y"
    assert good("x").cure == ""


@pytest.mark.parametrize(
    ("results", "worst"),
    [
        ([], CheckState.OK),
        ([skip("x")], CheckState.OK),
        ([good("x"), doubtful("x", "y"), skip("x")], CheckState.WARNING),
        ([wrong("x", "y"), doubtful("x", "y"), good("x")], CheckState.FAILURE),
    ],
    ids=["none", "not checked", "warning", "failure"],
)
def test_the_worst_state_counts(results: list[CheckResult], worst: CheckState) -> None:
    rows = [CheckRow("c", "", result) for result in results]
    assert worst_state(rows) is worst
    assert sum(count_states(rows).values()) == len(results)


def test_the_shape_of_the_report() -> None:
    rows = [
        CheckRow("port", "", wrong("taken", "end it")),
        CheckRow("a", "b", good("x")),
    ]
    assert write_report(rows) == {
        "schema": 1,
        "version": __version__,
        "state": "failure",
        "counts": {"ok": 1, "warning": 0, "failure": 1, "not checked": 0},
        "checks": [
            {
                "check": "port",
                "about": "",
                "state": "failure",
                "found": "taken",
                "cure": "end it",
            },
            {"check": "a", "about": "b", "state": "ok", "found": "x", "cure": ""},
        ],
    }
