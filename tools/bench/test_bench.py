"""scripts/bench, the whole of it, in its quickest mode."""

import math

import pytest

from tools.bench import completions
from tools.bench.__main__ import main
from tools.bench.measure import Figures
from tools.bench.report import BEFORE, compare
from tools.bench.scenarios import scenarios


def test_every_scenario_is_measured_and_no_stream_is_damaged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--seconds", "0.2"]) == 0
    rows = capsys.readouterr().out.splitlines()
    for scenario in scenarios(1):
        names = [
            row.split(" | ")[1] for row in rows if row.startswith(f"| {scenario.name} ")
        ]
        wanted = ["direct"] * scenario.direct + ["pass-through", "byok"]
        assert names == wanted


def test_what_became_dearer_in_most_rounds_is_named() -> None:
    plan = scenarios(1)[:2]
    before = Figures(cpu=[10.0, 20.0, 30.0], memory=[70.0] * 3)
    same = Figures(cpu=[10.4, 29.0, 30.0], memory=[70.0] * 3)
    dearer = Figures(cpu=[10.6, 20.0, 32.0], memory=[80.0] * 3)
    rows = ({BEFORE: before, "byok": one} for one in (same, dearer))
    table = dict(zip((scenario.name for scenario in plan), rows, strict=True))
    found = [*compare(plan, table)]
    assert len(found) == 2
    assert all(line.startswith(plan[1].name) for line in found)
    table = {scenario.name: {BEFORE: before, "byok": same} for scenario in plan}
    same.cpu[:] = [math.nan] * 3
    assert len([*compare(plan, table)]) == len(plan), "what nobody measured is no pass"


def test_all_three_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    completions.main(5)
    rows = capsys.readouterr().out.splitlines()
    assert [row.split(" p50 ")[0].strip() for row in rows] == [
        "the upstream alone",
        "through byok",
        "typed along",
    ]
