"""How long a refusal asks to wait, and for which quota, in the words of vendors."""

from typing import Any

import pytest
from hypothesis import given

from byok.dialects.rate_limits import (
    quotas_exceeded,
    read_retry_after,
    requested_wait,
    wait_in_words,
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


def test_rate_limit_names_every_exhausted_quota() -> None:
    ids = ["GenerateRequestsPerDay-FreeTier", "InputTokensPerMinute"]
    violations = [*({"quotaId": quota} for quota in ids), {}, 5]
    error = {"details": [{"violations": violations}, None]}
    assert quotas_exceeded(error) == " ".join(ids)
    assert quotas_exceeded({"details": "x"}) == ""


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.02, "1 s"),
        (36.2, "37 s"),
        (119.0, "119 s"),
        (864, "15 min"),
        (3600, "60 min"),
    ],
)
def test_rate_limit_wait_is_written_in_words(seconds: float, words: str) -> None:
    assert wait_in_words(seconds) == words


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


def test_retry_after_is_none_without_a_header() -> None:
    assert read_retry_after({}, NOW) is None
