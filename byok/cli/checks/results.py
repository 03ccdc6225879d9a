"""What checks find, for people and as JSON (docs/DOCTOR.md)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from byok import __version__
from byok.core.chat import Json

SCHEMA = 1


class CheckState(StrEnum):
    """How a check ended; the value is shown to users."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"
    NOT_CHECKED = "not checked"


_WORST = (CheckState.FAILURE, CheckState.WARNING, CheckState.OK)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What was found, and if it is not ok, the command or setting that fixes it."""

    state: CheckState
    found: str
    cure: str = ""


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A line of the report; `about` names an upstream, folder or file, "" for none."""

    check: str
    about: str
    result: CheckResult


class CannotCheck(Exception):
    """A check lacks a precondition; another check says why. The text is shown."""


def good(found: str) -> CheckResult:
    """Return that all is well."""
    return CheckResult(CheckState.OK, found)


def doubtful(found: str, cure: str) -> CheckResult:
    """Return a warning: byok works, but something is missing."""
    return CheckResult(CheckState.WARNING, found, cure)


def wrong(found: str, cure: str) -> CheckResult:
    """Return a failure: something does not work until it is fixed."""
    return CheckResult(CheckState.FAILURE, found, cure)


def skip(why: str, cure: str = "") -> CheckResult:
    """Return that nothing was checked, and why."""
    return CheckResult(CheckState.NOT_CHECKED, why, cure)


def count_states(rows: Sequence[CheckRow]) -> dict[CheckState, int]:
    """Return how many rows are in each state."""
    found = Counter(row.result.state for row in rows)
    return {state: found[state] for state in CheckState}


def worst_state(rows: Sequence[CheckRow]) -> CheckState:
    """Return the state of the whole; what was not checked does not count."""
    found = {row.result.state for row in rows}
    return next((state for state in _WORST if state in found), CheckState.OK)


def write_report(rows: Sequence[CheckRow]) -> Json:
    """Return the report as JSON."""
    return {
        "schema": SCHEMA,
        "version": __version__,
        "state": worst_state(rows).value,
        "counts": {state.value: count for state, count in count_states(rows).items()},
        "checks": [
            {
                "check": row.check,
                "about": row.about,
                "state": row.result.state.value,
                "found": row.result.found,
                "cure": row.result.cure,
            }
            for row in rows
        ],
    }
