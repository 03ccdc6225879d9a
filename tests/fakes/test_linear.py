"""The check of linear time, on a clock that the work itself moves."""

import pytest

from tests.fakes.linear import check_linear


class Work:
    """Takes as many seconds as `power` says of its size."""

    def __init__(self, power: int) -> None:
        self.power = power
        self.now = 0.0

    def __call__(self, size: int) -> None:
        self.now += size**self.power

    def clock(self) -> float:
        return self.now


@pytest.mark.parametrize("power", [0, 1])
def test_linear_time_passes(power: int) -> None:
    work = Work(power)
    check_linear(work, 100, work.clock)


@pytest.mark.parametrize("power", [2, 3])
def test_more_than_linear_time_fails(power: int) -> None:
    work = Work(power)
    with pytest.raises(AssertionError, match="not linear"):
        check_linear(work, 100, work.clock)
