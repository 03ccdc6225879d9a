"""scripts/bench, the whole of it, in its quickest mode."""

import pytest

from tools.bench import completions
from tools.bench.__main__ import main
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


def test_all_three_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    completions.main(5)
    rows = capsys.readouterr().out.splitlines()
    assert [row.split(" p50 ")[0].strip() for row in rows] == [
        "the upstream alone",
        "through byok",
        "typed along",
    ]
