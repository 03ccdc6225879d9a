"""The table of repetitions: what is sent again, how often, and after how long."""

import pytest

from byok.errors import (
    ConnectFailed,
    RefusalKind,
    UpstreamEmpty,
    UpstreamError,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from byok.upstream.retry import RetryPolicy, rest_of_key

POLICY = RetryPolicy(tries=2, first_wait=0.5, longest_backoff=8.0, longest_wait=30.0)


def refused(
    status: int,
    retry_after: float | None = None,
    *,
    retryable: bool = True,
    kind: RefusalKind = RefusalKind.UNKNOWN,
) -> UpstreamRefused:
    return UpstreamRefused(
        "No.",
        kind=kind,
        upstream_status=status,
        retry_after=retry_after,
        retryable=retryable,
    )


@pytest.mark.parametrize(
    ("error", "times"),
    [
        pytest.param(ConnectFailed("No."), 2, id="no connection"),
        pytest.param(UpstreamUnreachable("No."), 2, id="a connection lost"),
        pytest.param(UpstreamTimeout("No."), 0, id="silence: it may be paid"),
        pytest.param(UpstreamUnreachable("No.", retryable=False), 0, id="no trust"),
        pytest.param(refused(429), 2, id="429"),
        pytest.param(refused(429, retryable=False), 0, id="429 for want of money"),
        pytest.param(refused(500), 1, id="500 once"),
        pytest.param(refused(502), 2, id="502"),
        pytest.param(refused(503), 2, id="503"),
        pytest.param(refused(504), 2, id="504"),
        pytest.param(refused(529), 2, id="529"),
        pytest.param(refused(501), 0, id="501"),
        pytest.param(refused(400, retryable=False), 0, id="400"),
        pytest.param(refused(401, retryable=False), 0, id="401"),
        pytest.param(refused(408), 0, id="408"),
        pytest.param(refused(520), 2, id="520"),
        pytest.param(refused(0), 1, id="an error inside a stream"),
        pytest.param(refused(0, retryable=False), 0, id="a bad request in a stream"),
        pytest.param(refused(0, kind=RefusalKind.OVERLOADED), 2, id="overload in it"),
        pytest.param(refused(0, kind=RefusalKind.RATE_LIMIT), 2, id="a limit in it"),
        pytest.param(refused(400, kind=RefusalKind.LOADING), 2, id="a model loads"),
        pytest.param(UpstreamGarbled("No.", retryable=True), 1, id="a cut answer"),
        pytest.param(UpstreamEmpty("No.", retryable=True), 1, id="an empty answer"),
        pytest.param(UpstreamGarbled("No."), 0, id="no answer of a model"),
        pytest.param(UpstreamError("No.", retryable=True), 0, id="anything else"),
    ],
)
@pytest.mark.case("F09")
def test_retry_count_depends_on_the_failure(error: UpstreamError, times: int) -> None:
    waits = [POLICY.wait(error, attempt, 0.5) for attempt in range(1, 5)]
    assert [wait is not None for wait in waits] == [n < times for n in range(4)]


@pytest.mark.parametrize(
    ("kind", "asked", "rest"),
    [
        (RefusalKind.AUTH, None, 900.0),
        (RefusalKind.QUOTA, None, 900.0),
        (RefusalKind.RATE_LIMIT, None, 60.0),
        (RefusalKind.RATE_LIMIT, 5.0, 5.0),
        (RefusalKind.QUOTA, 1e9, 86_400.0),
        (RefusalKind.OVERLOADED, 5.0, None),
        (RefusalKind.UNKNOWN, None, None),
    ],
)
def test_a_key_rests_after_a_refusal_of_its_own(
    kind: RefusalKind, asked: float | None, rest: float | None
) -> None:
    assert rest_of_key(refused(429, asked, kind=kind)) == rest
    assert rest_of_key(ConnectFailed("No.")) is None


def test_retry_delay_doubles_up_to_a_limit_with_jitter() -> None:
    policy = RetryPolicy(tries=9, first_wait=0.5, longest_backoff=3.0)
    error = refused(503)
    assert [policy.wait(error, n, 1.0) for n in range(1, 6)] == [0.5, 1, 2, 3, 3]
    assert policy.wait(error, 1, 0.0) == 0
    assert policy.wait(error, 2, 0.25) == 0.25


def test_retry_of_a_lost_connection_is_at_once_the_first_time() -> None:
    lost = UpstreamUnreachable("No.", code="upstream_cut")
    assert [POLICY.wait(lost, n, 1.0) for n in (1, 2, 3)] == [0.0, 1.0, None]


@pytest.mark.parametrize(
    ("asked", "wait"), [(0.0, 0.0), (7.0, 7.0), (30.0, 30.0), (30.1, None)]
)
@pytest.mark.case("F09")
def test_retry_after_is_kept_or_passed_on(asked: float, wait: float | None) -> None:
    assert POLICY.wait(refused(429, asked), 1, 0.5) == wait
    assert POLICY.wait(refused(429, asked), 3, 0.5) is None
