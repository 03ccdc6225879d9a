"""Each check runs for itself, on what checks share; and the report of all."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable

import pytest

from byok import __version__
from byok.cli.checks import base as module
from byok.cli.checks.base import (
    CannotCheck,
    CheckContext,
    CheckResult,
    CheckRow,
    CheckState,
    NoProof,
    count_states,
    doubtful,
    good,
    in_background,
    once,
    skip,
    worst_state,
    write_report,
    wrong,
)
from byok.cli.checks.examine import Check, examine
from byok.core.errors import ConfigError
from byok.core.platform.paths import find_paths
from byok.core.routing import Service
from tests.fakes.doctors import result_in, surroundings
from tests.fakes.rows import daemon_rows

Run = Callable[..., Awaitable[CheckResult]]


def raising(error: Exception) -> Run:
    async def run(around: CheckContext, about: str = "") -> CheckResult:
        raise error

    return run


async def well(around: CheckContext, about: str = "") -> CheckResult:
    return good(f"well {about}".strip())


async def endless(around: CheckContext, about: str = "") -> CheckResult:
    await asyncio.Event().wait()
    return good("never")


@pytest.mark.parametrize(
    ("error", "state", "found", "cure"),
    [
        (ZeroDivisionError("1/0"), "failure", "broke (ZeroDivisionError)", "report"),
        (CannotCheck("no daemon"), "not checked", "no daemon", ""),
        (ConfigError("Bad.", hint="Mend it."), "failure", "Bad.", "Mend it."),
        (PermissionError(13, "Denied", "/x"), "failure", "/x: Denied", "accessible"),
    ],
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
    async def two(around: CheckContext) -> list[str]:
        await asyncio.sleep(0.01)
        return ["a", "b"]

    async def none(around: CheckContext) -> list[str]:
        return []

    checks = [Check("x", well, two), Check("y", well, none), Check("z", well)]
    async with surroundings() as around:
        rows = await examine(around, checks)
    assert [(row.check, row.about) for row in rows] == [
        *(("x", "a"), ("x", "b")),
        ("z", ""),
    ]


async def test_no_more_than_fifty_subjects_are_looked_at() -> None:
    async def many(around: CheckContext) -> list[str]:
        return [str(number) for number in range(53)]

    async with surroundings() as around:
        rows = await examine(around, [Check("x", well, many)])
    assert [row.about for row in rows[:50]] == [str(number) for number in range(50)]
    assert [row.result.found for row in rows[50:]] == ["3 more are not looked at"]
    assert all(row.result.state is CheckState.NOT_CHECKED for row in rows[50:])


async def test_a_row_is_one_line_each_short_and_without_secrets() -> None:
    async def secret(around: CheckContext) -> list[str]:
        around.redactor.add("canary-0123456789")
        return ["the canary-0123456789"]

    async def long(around: CheckContext, about: str = "") -> CheckResult:
        return wrong("a\nb canary-0123456789 " + "x" * 9999, "c\n d")

    async with surroundings() as around:
        [row] = await examine(around, [Check("x", long, secret)])
    assert row.result.found.startswith("a b [redacted] xxx")
    assert len(row.result.found) == 400
    assert (row.result.cure, row.about) == ("c d", "the [redacted]")


@pytest.mark.parametrize(
    ("results", "worst"),
    [
        ([], CheckState.OK),
        ([skip("x")], CheckState.OK),
        ([good("x"), doubtful("x", "y"), skip("x")], CheckState.WARNING),
        ([wrong("x", "y"), doubtful("x", "y"), good("x")], CheckState.FAILURE),
    ],
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


async def test_one_who_gives_up_does_not_end_what_others_wait_for() -> None:
    go_on = asyncio.Event()

    @once
    async def find(around: CheckContext) -> int:
        await go_on.wait()
        return 7

    async with surroundings() as around:
        first = asyncio.ensure_future(find(around))
        second = asyncio.ensure_future(find(around))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        go_on.set()
        assert await second == 7


async def test_a_daemon_without_a_token_is_not_asked_and_none_is_created() -> None:
    async with daemon_rows() as rows, surroundings() as around:
        find_paths().owner_secret.unlink()
        with pytest.raises(CannotCheck, match="no secret"):
            await around.daemon()
    assert rows.asked == []
    assert not os.path.lexists(find_paths().owner_secret)


async def test_a_daemon_is_asked_once_for_each_thing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_START_SECONDS", 0.1)
    answers = {"/byok/daemon": {"version": "1"}}
    async with daemon_rows(answers) as rows:
        find_paths().owner_secret.write_text("t" * 40)
        find_paths().owner_secret.chmod(0o600)
        async with surroundings() as around:
            for _ in range(2):
                assert await around.ask(Service.DAEMON) == {"version": "1"}
        rows.honest = False
        async with surroundings() as around:
            with pytest.raises(NoProof):
                await around.daemon()
            assert await around.running() is None
    assert rows.asked == [("/byok/daemon", {})]


async def test_who_stops_waiting_leaves_the_work_alone() -> None:
    go_on, ended = threading.Event(), threading.Event()

    def work() -> None:
        go_on.wait(20)
        ended.set()

    task = asyncio.ensure_future(in_background(work))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    assert await asyncio.to_thread(ended.wait, 20)
