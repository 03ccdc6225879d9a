"""What a check found: a state, one line, and one line that says what to do."""

from dataclasses import dataclass
from enum import StrEnum


class CheckState(StrEnum):
    """How a check ended; the value is shown to users."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"
    NOT_CHECKED = "not checked"


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
