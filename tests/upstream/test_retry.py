"""The table of repetitions: what is sent again, how often, and after how long."""

import pytest
from msgspec.structs import replace

from byok.core.chat import ChatRequest, FimRequest
from byok.core.errors import (
    ConnectFailed,
    RefusalKind,
    UpstreamError,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from byok.upstream.retry import Patience, key_cooldown, patience_of

MANY = 9  # of the tries of a test: as often as the patience allows


class Waiter:
    """The patience of one request, and a time that only its waits move."""

    def __init__(
        self, seconds: float = 300.0, luck: float = 1.0, *, has_others: bool = False
    ) -> None:
        self.now, self.luck = 0.0, luck
        self.patience = Patience(seconds, has_others)
        self.notices: list[str] = []

    def waits(self, error: UpstreamError, tries: int = 99) -> list[float]:
        """Fail again and again; give the waits until the patience ends."""
        waits: list[float] = []
        while len(waits) < tries:
            planned = self.patience.plan_wait(error, self.now, self.luck)
            if planned is None:
                break
            self.patience, notice = planned.write_notice("groq", error, self.now)
            self.notices += [notice.text] if notice else []
            waits.append(self.patience.pause)
            self.now += self.patience.pause
        return waits


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
        pytest.param(UpstreamTimeout("No."), 1, id="silence once"),
        pytest.param(UpstreamUnreachable("No.", retryable=False), 0, id="no trust"),
        pytest.param(refused(429), MANY, id="429"),
        pytest.param(refused(500), 1, id="500 once"),
        pytest.param(refused(529), MANY, id="529"),
        pytest.param(refused(400, retryable=False), 0, id="400"),
        pytest.param(refused(520), MANY, id="520"),
        pytest.param(refused(0), 1, id="an error inside a stream"),
        (refused(0, kind=RefusalKind.OVERLOADED), MANY),  # overload in it
        pytest.param(refused(400, kind=RefusalKind.LOADING), MANY, id="a model loads"),
        pytest.param(refused(400, kind=RefusalKind.TOOL_FAILED), 1, id="a bad call"),
        pytest.param(UpstreamGarbled("No.", retryable=True), 1, id="a cut answer"),
        pytest.param(UpstreamGarbled("No."), 0, id="no answer of a model"),
    ],
)
@pytest.mark.case("F09")
def test_retry_count_depends_on_the_failure(error: UpstreamError, times: int) -> None:
    assert len(Waiter().waits(error, MANY)) == times


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
    assert key_cooldown(refused(429, asked, kind=kind)) == rest
    assert key_cooldown(ConnectFailed("No.")) is None


def test_waits_double_up_to_half_a_minute_and_end_with_the_patience() -> None:
    waits = Waiter().waits(refused(503))
    assert waits[:8] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert sum(waits) == 300
    assert Waiter(luck=0.5).waits(refused(503), 3) == [0.25, 0.5, 1]


def test_waits_are_shorter_where_other_models_are_left_or_nobody_waits() -> None:
    busy, lost = refused(503), UpstreamUnreachable("No.", code="upstream_cut")
    assert Waiter(has_others=True).waits(busy) == [0.5, 1]
    assert Waiter(has_others=True).waits(UpstreamTimeout("No.")) == []
    assert Waiter(60).waits(UpstreamTimeout("No.")) == []
    assert Waiter(0).waits(busy) == []
    assert Waiter(0).waits(lost) == [0.0]


def test_patience_depends_on_who_waits() -> None:
    chat = ChatRequest(())
    assert patience_of(chat, 900) == 900
    assert patience_of(replace(chat, silent=True), 900) == 60
    assert patience_of(replace(chat, fim=FimRequest("a", "b")), 900) == 0


@pytest.mark.parametrize(
    ("asked", "waits"),
    [(0.0, 2), (7.0, 2), (150.0, 2), (151.0, 1), (300.0, 1), (300.1, 0)],
)
@pytest.mark.case("F09")
def test_retry_after_is_kept_up_to_the_patience(asked: float, waits: int) -> None:
    waited = Waiter().waits(refused(429, asked), 2)
    assert len(waited) == waits
    assert all(seconds >= asked for seconds in waited)


def test_few_notices_cover_a_long_wait() -> None:
    waiter = Waiter()
    waiter.waits(refused(503))
    assert waiter.notices[0] == "groq: it answered 503, waiting up to 30 s."
    assert 2 <= len(waiter.notices) <= 5
    assert "5 min" in waiter.patience.explain(refused(503), waiter.now).hint
    broken = refused(500)
    assert waiter.patience.explain(broken, waiter.now) is broken
