"""What the page shows of usage, through its interface."""

import time
from typing import Any

import pytest

from byok.core.platform.paths import find_paths
from byok.server.dashboard.journal_api import RANGES
from tests.fakes.daemon import running
from tests.fakes.dashboard import signed_in
from tests.fakes.journal_entries import entry, write_journal

DAY = 86_400
HOSTILE = "<img src=x onerror=alert(1)>\x1b[2J\u202e"
SUMS = {
    "requests",
    "failed",
    "uncounted",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_written_tokens",
    "cost",
    "unpriced",
    "cache_input_tokens",
}


async def ask(name: str, body: Any) -> Any:
    async with running(upstream="demo") as editor:
        return await (await signed_in(editor)).call(name, body)


def fill(*ages: float, **fields: Any) -> None:
    """Write a request of each age in days."""
    now = time.time()
    entries = [entry(started=now - age * DAY, **fields) for age in ages]
    write_journal(find_paths().journal, entries)


@pytest.mark.parametrize(
    ("wanted", "step", "buckets", "counted"),
    [
        ("day", "hour", range(24, 25), 1),
        ("week", "six_hours", range(25, 30), 2),
        ("month", "day", range(30, 31), 3),
        ("quarter", "week", range(13, 15), 4),
    ],
)
async def test_a_range_is_in_steps_up_to_now(
    wanted: str, step: str, buckets: range, counted: int
) -> None:
    fill(0, 4, 20, 80, 100)
    told = await ask("series", {"range": wanted, "by": "model"})
    assert (told["range"], told["step"], told["keeps"]) == (wanted, step, True)
    assert len(told["buckets"]) in buckets
    assert told["total"]["requests"] == counted
    assert sum(bucket["requests"] for bucket in told["buckets"]) == counted
    assert any(bucket["requests"] for bucket in told["buckets"][-2:])
    begins = [bucket["begin"] for bucket in told["buckets"]]
    assert begins == sorted(begins)
    assert [*RANGES] == ["day", "week", "month", "quarter"]


async def test_a_bucket_has_all_sums_its_parts_and_percentiles() -> None:
    fill(0, client=HOSTILE, cost=None)
    told = await ask("series", {"range": "day", "by": "client"})
    assert (told["names"], told["others"]) == ([HOSTILE], False)
    [last] = (bucket for bucket in told["buckets"] if bucket["requests"])
    assert {*last} == SUMS | {"begin", "local", "parts", "first_byte", "seconds"}
    assert last["parts"] == [{name: last[name] for name in SUMS}]
    assert last["first_byte"] == {"median": 0.4, "high": 0.4}
    assert (last["unpriced"], last["cost"], last["cache_read_tokens"]) == (1, 0, 1000)
    assert (
        time.strftime("%Y-%m-%dT%H:%M", time.localtime(last["begin"]))
        == (last["local"])
    )


async def test_that_nothing_new_is_counted_is_told() -> None:
    async with running({"journal": {"keep_days": 0}}, upstream="demo") as editor:
        told = await (await signed_in(editor)).call("series", {"range": "day"})
    assert told["keeps"] is False


@pytest.mark.parametrize(
    ("by", "key"),
    [
        ("model", "byok:one:m"),
        ("client", "vscode/0.600.1"),
        ("conversation", "c0ffee-1"),
        ("day", None),
    ],
)
async def test_usage_is_summed_by_each_group(by: str, key: str | None) -> None:
    fill(0, 0, 3)
    told = await ask("usage", {"by": by, "days": 2})
    assert (told["by"], told["days"], told["more"]) == (by, 2, 0)
    [row] = told["rows"]
    assert row["key"] == key or (by == "day" and row["key"].startswith("20"))
    assert {*row} == SUMS | {"key"}
    assert {**row, "key": "total"} == told["total"]
    assert row["requests"] == 2
