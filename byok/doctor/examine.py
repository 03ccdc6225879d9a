"""Running the checks: all at once, independently, each with a time limit."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from byok.doctor.registry import CHECKS, Check
from byok.doctor.results import CannotCheck, CheckResult, CheckRow, skip, wrong
from byok.doctor.surroundings import Surroundings
from byok.errors import ByokError

T = TypeVar("T")
_LONGEST = 400  # characters of a line
_MOST_SUBJECTS = 50
_REPORT = "Please report this: byok doctor --bundle FILE.zip collects what is needed"


async def examine(
    around: Surroundings, checks: Sequence[Check] = CHECKS
) -> list[CheckRow]:
    """Run checks, and return their results in the order of the table."""
    found = await asyncio.gather(*(_run_check(around, check) for check in checks))
    rows = [row for rows in found for row in rows]
    return [_clean(around, row) for row in rows]  # by now all secrets are known


async def _run_check(around: Surroundings, check: Check) -> list[CheckRow]:
    subjects = await _limit(check.subjects(around), check.seconds)
    if isinstance(subjects, CheckResult):
        return [CheckRow(check.name, "", subjects)]
    some = subjects[:_MOST_SUBJECTS]
    runs = (_limit(check.run(around, about), check.seconds) for about in some)
    results = await asyncio.gather(*runs)
    rows = [
        CheckRow(check.name, about, result)
        for about, result in zip(some, results, strict=True)
    ]
    if more := len(subjects) - len(some):
        rows.append(CheckRow(check.name, "", skip(f"{more} more are not looked at")))
    return rows


async def _limit(work: Awaitable[T], seconds: float) -> T | CheckResult:
    """Return what `work` gives; a result that says why if it gives nothing."""
    task = asyncio.ensure_future(work)
    await asyncio.wait([task], timeout=seconds)
    if not task.done():
        task.cancel()
        return wrong(
            f"there was no answer within {seconds:g} s", "Try again, or report it"
        )
    error = task.exception()
    return task.result() if error is None else _result_of(error)


def _result_of(error: BaseException) -> CheckResult:
    match error:
        case CannotCheck():
            return skip(str(error))
        case ByokError():
            return wrong(str(error), error.hint or _REPORT)
        case OSError(strerror=why, filename=file) if why and file:
            return wrong(f"{file}: {why}", "Make it accessible for you")
        case Exception():
            return wrong(f"the check itself broke ({type(error).__name__})", _REPORT)
        case _:
            raise error


def _clean(around: Surroundings, row: CheckRow) -> CheckRow:
    """Return a row of single lines without secrets."""

    def line(text: str) -> str:
        return around.redactor(" ".join(text.split()))[:_LONGEST]

    result = row.result
    clean = CheckResult(result.state, line(result.found), line(result.cure))
    return CheckRow(row.check, line(row.about), clean)
