"""Settings that a user has written, and the checks of `byok doctor` inside the test."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from byok.cli.checks.base import CheckResult, CheckRow, Machine, Surroundings
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
) -> AsyncIterator[Surroundings]:
    """Give what checks look at, in the test's home."""
    given: dict[str, Any] = {} if environ is None else {"environ": environ}
    around = Surroundings(
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
