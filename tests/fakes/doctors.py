"""Settings that a user has written, and the checks of `byok doctor` inside the test."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from inspect import isawaitable
from pathlib import Path
from typing import Any, cast

from byok.cli.checks.base import (
    CheckContext,
    CheckResult,
    CheckRow,
    CheckState,
    Machine,
)
from byok.core.platform.paths import find_paths
from tests.fakes import daemon
from tests.fakes.commands import Done


def write_settings(*lines: str) -> Path:
    """Write the settings file of the test's home."""
    return daemon.write_settings("\n".join(lines) + "\n")


def upstream_box(url: str, *lines: str) -> list[str]:
    """Return the section of an upstream that is called box."""
    return ["[upstreams.box]", f'base_url = "{url}"', "context_window = 100000", *lines]


@asynccontextmanager
async def surroundings(
    machine: Machine | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    asks_models: bool = False,
) -> AsyncIterator[CheckContext]:
    """Give what checks look at, in the test's home."""
    given: dict[str, Any] = {} if environ is None else {"environ": environ}
    around = CheckContext(
        find_paths(), machine=machine, asks_models=asks_models, **given
    )
    try:
        yield around
    finally:
        await around.close()


def result_in(rows: Sequence[CheckRow], check: str) -> CheckResult:
    [found] = [row.result for row in rows if (row.check, row.about) == (check, "")]
    return found


def rows_of(done: Done) -> dict[str, dict[str, str]]:
    """Return the rows that a command printed as JSON, by check and what it is about."""
    report = json.loads(done.out)
    return {f"{row['check']} {row['about']}".strip(): row for row in report["checks"]}


def judged(
    result: CheckResult, state: CheckState, found: str = "", cure: str = ""
) -> None:
    """Check what is said of a state, and that nothing that is well has a cure."""
    assert result.state is state, result
    assert found in result.found
    assert cure in result.cure
    if state is not CheckState.NOT_CHECKED:
        assert bool(result.cure) is (state is not CheckState.OK)


async def run_check(
    check: Callable[..., Any], *about: str, **around: Any
) -> CheckResult:
    """Run one check, about one thing, in surroundings of its own."""
    async with surroundings(**around) as made:
        result = check(made, *about)
        return cast(CheckResult, await result if isawaitable(result) else result)
