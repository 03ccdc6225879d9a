"""scripts/load: each case once, small and short. Times are not judged here."""

from collections.abc import Awaitable, Callable

import pytest

from tools.load.bodies import l8
from tools.load.connections import l9, l10
from tools.load.outcome import Outcome
from tools.load.streams import l1, l3
from tools.load.traffic import l2, soak

# A busy machine misses these in a second or two, and it says nothing about byok.
_TIMES = {
    "added p50",
    "added p99",
    "control p99",
    "longest stall",
    "room for all: max/min served",
}
_CASES: dict[str, Callable[[], Awaitable[Outcome]]] = {
    "L1": lambda: l1(1, streams=4),
    "L2": lambda: l2(1.5, streams=4, rate=40),
    "L3": lambda: l3(2, clients=12, places=4, chunks=5),
    "L8": lambda: l8(0.1, clients=2, size=2_000_000),
    "L9": lambda: l9(1, rate=200, most_open=100),
    "L10": lambda: l10(1, rate=50),
    "soak": lambda: soak(2, streams=4, rate=30, longest=40),
}


@pytest.mark.parametrize("case", _CASES)
async def test_a_case_runs_and_finds_nothing_wrong(case: str) -> None:
    outcome = await _CASES[case]()
    assert not set(outcome.missed) - _TIMES, outcome.line()
    assert outcome.line().startswith(f"{case}: ")
