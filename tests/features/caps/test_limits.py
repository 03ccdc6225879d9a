"""The caps of the settings, and their sentences."""

import pytest
from pydantic import ValidationError

from byok.features.caps.feature import Cap, Period, Spent, Unit, list_caps
from byok.features.caps.settings import CapSettings

SPENT = Spent(8, 5000, 1.5)


def test_only_caps_that_are_set_count() -> None:
    assert list_caps(CapSettings()) == ()
    settings = CapSettings(requests_per_day=10, usd_per_conversation=0.5)
    assert [(cap.name, cap.most) for cap in list_caps(settings)] == [
        ("requests_per_day", 10),
        ("usd_per_conversation", 0.5),
    ]


def test_every_setting_is_a_cap() -> None:
    every = CapSettings.model_validate(dict.fromkeys(CapSettings.model_fields, 1))
    assert {cap.name for cap in list_caps(every)} == set(CapSettings.model_fields)


@pytest.mark.parametrize(
    ("cap", "used", "told"),
    [
        (Cap(Unit.REQUESTS, Period.DAY, 10), 9, "9 of 10 requests today"),
        (Cap(Unit.TOKENS, Period.DAY, 6000), 5000, "5,000 of 6,000 tokens today"),
        (
            Cap(Unit.DOLLARS, Period.CONVERSATION, 2),
            1.5,
            "$1.50 of $2.00 in this conversation",
        ),
    ],
)
def test_a_cap_says_what_is_used_and_what_to_do(
    cap: Cap, used: float, told: str
) -> None:
    assert cap.measure(SPENT, begun=1) == used
    assert told in cap.warning(used)
    error = cap.error(used)
    assert told in str(error)
    assert (error.code, error.status, error.retryable) == ("cap_reached", 402, False)
    assert f"Raise {cap.name} under [caps]" in error.hint


def test_a_cap_in_dollars_says_what_is_not_known() -> None:
    cap = Cap(Unit.DOLLARS, Period.DAY, 5)
    told = "$1.20 + 61 requests of unknown price, of $5.00 today"
    assert told in cap.warning(1.2, 61)
    assert told in str(cap.error(1.2, 61))
    assert "$0" not in cap.warning(0.0, 61)


def test_a_cap_is_near_from_four_fifths_on() -> None:
    cap = Cap(Unit.TOKENS, Period.DAY, 100)
    assert [cap.is_near(used) for used in (79, 80, 100)] == [False, True, True]


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "much"])
def test_a_cap_is_a_number_from_0(value: object) -> None:
    with pytest.raises(ValidationError):
        CapSettings.model_validate({"usd_per_day": value})
