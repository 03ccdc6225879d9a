"""An upstream that cannot be reached is left alone for a while."""

from collections.abc import Callable

import pytest

from byok.core.errors import NotReady, UpstreamUnreachable
from byok.upstream.http_call import FAILURES, CircuitBreaker
from tests.fakes.clock import Clock

DOWN = UpstreamUnreachable("nothing answers at http://a/v1.", hint="Is it running?")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker(30.0, clock=clock, sleep=clock.sleep)


def is_open(check: Callable[[], None]) -> bool:
    try:
        check()
    except NotReady as error:
        assert (error.status, error.code, error.retryable) == (
            503,
            "upstream_down",
            True,
        )
        return True
    return False


def fail(breaker: CircuitBreaker, times: int = FAILURES) -> None:
    for _ in range(times):
        breaker.record_failure(DOWN)


def test_circuit_breaker_resets_its_count_at_one_success(
    breaker: CircuitBreaker,
) -> None:
    fail(breaker, FAILURES - 1)
    breaker.record_success()
    breaker.record_failure(DOWN)
    assert not is_open(breaker.check)


def test_circuit_breaker_lets_one_probe_through_after_the_pause(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    fail(breaker)
    clock.now += 29.9
    assert is_open(breaker.check)
    clock.now += 0.1
    assert not is_open(breaker.check)
    assert is_open(breaker.check)


async def test_circuit_breaker_does_not_count_a_cancelled_request(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    fail(breaker)
    clock.now += 30
    with pytest.raises(ValueError):
        async with breaker.attempt():
            assert is_open(breaker.check)  # for all others, as long as it goes on
            raise ValueError
    assert not is_open(breaker.check)


@pytest.mark.parametrize("left", [1.9, 0.01])
async def test_circuit_breaker_waits_for_a_short_pause(
    breaker: CircuitBreaker, clock: Clock, left: float
) -> None:
    fail(breaker)
    clock.now += 30 - left
    async with breaker.attempt():
        breaker.record_success()
    assert clock.now == pytest.approx(1030)
    assert not is_open(breaker.check)


async def test_circuit_breaker_reports_a_long_pause_at_once(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    fail(breaker)
    clock.now += 27.9
    with pytest.raises(NotReady, match=r" in 3 s\."):
        async with breaker.attempt():
            pass
    assert clock.now == pytest.approx(1027.9)
