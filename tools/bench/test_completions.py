"""The measurement of completions, in its quickest mode."""

import pytest

from tools.bench.completions import main


def test_all_three_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    main(5)
    rows = capsys.readouterr().out.splitlines()
    assert [row.split(" p50 ")[0].strip() for row in rows] == [
        "the upstream alone",
        "through byok",
        "typed along",
    ]
