"""How long a refusal asks to wait, and for which quota, in the words of vendors."""

from typing import Any

import httpx
import pytest
from hypothesis import given

from byok.dialects.rate_limits import (
    quotas_exceeded,
    read_retry_after,
    requested_wait,
)
from tests.fakes.values import VALUES


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Please retry in 36.206s.", 36.206),
        ("Please try again in 20ms. Visit", 0.02),
        ("Please try again in 1m26.4s.", 86.4),
        ("Please try again in 6m0s", 360.0),
        ("try again in 2h5m", 7500.0),
        ("Please retry after 26 seconds.", 26.0),
        ("Try again in 2 minutes", 120.0),
        ("Please try again in 350ms", 0.35),
        ("try again in 1m20.5s", 80.5),
        ("Try it again in 250 milliseconds", 0.25),
        ("Please wait 2 hours and 5 minutes before you ask", 7500.0),
        ("Limit resets in about 12s", 12.0),
        ("Your quota is available again in 1 day", 86400.0),
        ("They await 5 s", None),
        ("Please retry shortly", None),
        ("Retry in a moment", None),
        ("Limit 30000, used 29000", None),
        ("", None),
    ],
)
def test_rate_limit_wait_is_read_from_the_sentence(
    message: str, seconds: float | None
) -> None:
    assert requested_wait(message, {}) == (seconds and pytest.approx(seconds))


@pytest.mark.parametrize(
    ("delay", "seconds"), [("36s", 36.0), ("0.5s", 0.5), ("90.25s", 90.25), ("x", None)]
)
def test_rate_limit_retry_info_of_google_wins_over_the_sentence(
    delay: str, seconds: float | None
) -> None:
    error = {"details": [{"@type": "Help"}, {"retryDelay": delay}]}
    assert requested_wait("Please retry in 7s.", error) == seconds


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        ({"retry_after": 2.5}, 2.5),
        ({"retryAfter": "9"}, 9.0),
        ({"metadata": {"retry_after_seconds": 12}}, 12.0),
        ({"retry_after": True, "metadata": "x"}, 7.0),
        ({"retry_after": -1}, 7.0),
        ({"retry_after": 1e300}, 7.0),
    ],
)
def test_rate_limit_wait_may_be_a_field_of_the_error(
    error: Any, seconds: float
) -> None:
    assert requested_wait("Please retry in 7s.", error) == seconds


def test_rate_limit_names_every_exhausted_quota() -> None:
    ids = ["GenerateRequestsPerDay-FreeTier", "InputTokensPerMinute"]
    violations = [*({"quotaId": quota} for quota in ids), {}, 5]
    error = {"details": [{"violations": violations}, None]}
    assert quotas_exceeded(error) == " ".join(ids)
    assert quotas_exceeded({"details": "x"}) == ""


@given(VALUES, VALUES)
def test_rate_limit_details_may_be_any_json(error: Any, detail: Any) -> None:
    for found in (error, {"details": error}, {"details": [detail]}):
        assert isinstance(quotas_exceeded(found), str)
        wait = requested_wait("", found)
        assert wait is None or wait >= 0


NOW = 1_445_412_480.0  # Wed, 21 Oct 2015 07:28:00 GMT


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5.0),
        (" 0 ", 0.0),
        ("1.5", 1.5),
        ("3600", 3600.0),
        ("Wed, 21 Oct 2015 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2015 07:27:30 GMT", 0.0),
        ("abc", None),
        ("-5", None),
        ("1.2.3", None),
        (".", None),
        ("nan", None),
        ("9" * 400, None),
        ("Wed, 99 Oct 2015 07:28:30 GMT", None),
        ("", None),
    ],
)
@pytest.mark.case("F09")
def test_retry_after_is_read(value: str, seconds: float | None) -> None:
    assert read_retry_after({"retry-after": value}, NOW) == seconds


@pytest.mark.parametrize(
    ("milliseconds", "seconds"),
    [("1500", 1.5), ("250.5", 0.2505), ("soon", 7.0), ("", 7.0)],
)
def test_retry_after_ms_is_more_exact(milliseconds: str, seconds: float) -> None:
    headers = {"retry-after-ms": milliseconds, "retry-after": "7"}
    assert read_retry_after(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({"x-ratelimit-reset-requests": "2m59.56s"}, 179.56, id="Groq"),
        pytest.param(
            {
                "x-ratelimit-remaining-requests": "59",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            360.0,
            id="OpenAI: the quota that is used up",
        ),
        pytest.param(
            {
                "x-ratelimit-reset-requests-day": "33011.38",
                "x-ratelimit-remaining-requests-day": "10",
                "x-ratelimit-reset-tokens-minute": "11.5",
                "x-ratelimit-remaining-tokens-minute": "0",
            },
            11.5,
            id="Cerebras",
        ),
        pytest.param(
            {
                "anthropic-ratelimit-tokens-reset": "2015-10-21T07:28:42Z",
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2015-10-21T07:28:00",
                "anthropic-ratelimit-requests-remaining": "0",
            },
            42.0,
            id="Anthropic",
        ),
        pytest.param({"X-RateLimit-Reset": "1445412490000"}, 10.0, id="OpenRouter"),
        pytest.param({"x-ratelimit-reset": "1445412470"}, 0.0, id="a time gone by"),
        pytest.param({"ratelimit-reset": "50"}, 50.0, id="IETF"),
        pytest.param({"retry-after": "1m5s", "ratelimit-reset": "9"}, 65.0, id="span"),
        pytest.param({"x-ratelimit-reset-tokens": "soon"}, None, id="no time"),
        pytest.param({"x-ratelimit-limit-tokens": "50"}, None, id="a limit"),
    ],
)
def test_rate_limit_without_retry_after_lasts_until_its_quota_is_filled(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert read_retry_after(httpx.Headers(headers), NOW) == (
        seconds and pytest.approx(seconds)
    )
