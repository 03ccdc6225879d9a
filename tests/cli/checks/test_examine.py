"""Each check runs for itself: one that breaks or hangs does not stop the others."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from byok.cli.checks.examine import CHECKS, Check, examine
from byok.cli.checks.results import CannotCheck, CheckResult, CheckState, good, wrong
from byok.cli.checks.surroundings import Surroundings
from byok.core.errors import ByokError, ConfigError
from tests.fakes.doctors import result_in, surroundings

Run = Callable[..., Awaitable[CheckResult]]


def raising(error: Exception) -> Run:
    async def run(around: Surroundings, about: str = "") -> CheckResult:
        raise error

    return run


async def well(around: Surroundings, about: str = "") -> CheckResult:
    return good(f"well {about}".strip())


async def endless(around: Surroundings, about: str = "") -> CheckResult:
    await asyncio.Event().wait()
    return good("never")


@pytest.mark.parametrize(
    ("error", "state", "found", "cure"),
    [
        (ZeroDivisionError("1/0"), "failure", "broke (ZeroDivisionError)", "report"),
        (KeyError("k"), "failure", "the check itself broke (KeyError)", "report"),
        (TimeoutError(), "failure", "the check itself broke (TimeoutError)", "report"),
        (CannotCheck("no daemon"), "not checked", "no daemon", ""),
        (ConfigError("Bad.", hint="Mend it."), "failure", "Bad.", "Mend it."),
        (ByokError("Bad."), "failure", "Bad.", "report"),
        (PermissionError(13, "Denied", "/x"), "failure", "/x: Denied", "accessible"),
    ],
    ids=str,
)
async def test_a_check_that_raises_leaves_the_others(
    error: Exception, state: str, found: str, cure: str
) -> None:
    checks = [Check("bad", raising(error)), Check("next", well)]
    async with surroundings() as around:
        rows = await examine(around, checks)
    bad = result_in(rows, "bad")
    assert (bad.state, found in bad.found) == (state, True)
    assert cure in bad.cure
    assert result_in(rows, "next").state is CheckState.OK


async def test_a_check_that_hangs_ends_after_its_time() -> None:
    checks = [Check("hangs", endless, seconds=0.05), Check("next", well)]
    async with surroundings() as around:
        rows = await examine(around, checks)
    assert "no answer within 0.05 s" in result_in(rows, "hangs").found
    assert result_in(rows, "next").state is CheckState.OK


async def test_a_check_runs_for_each_subject_and_rows_keep_the_order() -> None:
    async def two(around: Surroundings) -> list[str]:
        await asyncio.sleep(0.01)
        return ["a", "b"]

    async def none(around: Surroundings) -> list[str]:
        return []

    checks = [Check("x", well, two), Check("y", well, none), Check("z", well)]
    async with surroundings() as around:
        rows = await examine(around, checks)
    assert [(row.check, row.about) for row in rows] == [
        *(("x", "a"), ("x", "b")),
        ("z", ""),
    ]


@pytest.mark.parametrize(
    ("count", "rest"), [(50, []), (53, ["3 more are not looked at"])]
)
async def test_no_more_than_fifty_subjects_are_looked_at(
    count: int, rest: list[str]
) -> None:
    async def many(around: Surroundings) -> list[str]:
        return [str(number) for number in range(count)]

    async with surroundings() as around:
        rows = await examine(around, [Check("x", well, many)])
    assert [row.about for row in rows[:50]] == [str(number) for number in range(50)]
    assert [row.result.found for row in rows[50:]] == rest
    assert all(row.result.state is CheckState.NOT_CHECKED for row in rows[50:])


async def test_subjects_that_cannot_be_found_are_one_row() -> None:
    async def unknown(around: Surroundings) -> list[str]:
        raise CannotCheck("the settings cannot be used")

    async with surroundings() as around:
        [row] = await examine(around, [Check("x", well, unknown)])
    assert row.result.state is CheckState.NOT_CHECKED


async def test_a_row_is_one_line_each_short_and_without_secrets() -> None:
    async def secret(around: Surroundings) -> list[str]:
        around.redactor.add("canary-0123456789")
        return ["the canary-0123456789"]

    async def long(around: Surroundings, about: str = "") -> CheckResult:
        return wrong("a\nb canary-0123456789 " + "x" * 9999, "c\n d")

    async with surroundings() as around:
        [row] = await examine(around, [Check("x", long, secret)])
    assert row.result.found.startswith("a b [redacted] xxx")
    assert len(row.result.found) == 400
    assert (row.result.cure, row.about) == ("c d", "the [redacted]")


def test_every_check_has_a_name_of_its_own_and_a_limit() -> None:
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)
    assert all(0 < check.seconds <= 400 for check in CHECKS)
