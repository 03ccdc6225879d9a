"""How the command line writes what features show."""

from byok.features.status import Meter, StatusLine, write_rows


def test_meters_tell_what_is_used_and_what_does_not_count() -> None:
    rows = [
        Meter("requests_per_day", 12, 1000),
        Meter("usd_per_day", 1.5, 5.0, in_dollars=True, unpriced=3),
        Meter("usd_per_day", 0.0, 5.0, in_dollars=True, unpriced=1),
        Meter("tokens_per_conversation", None, 10_000),
    ]
    assert write_rows(row.encode() for row in rows) == [
        "requests_per_day: 12 of 1,000 used",
        "usd_per_day: $1.50 + 3 requests of unknown price, of $5.00 used",
        "usd_per_day: 1 request of unknown price, of $5.00 used",
        "tokens_per_conversation: 10,000 at most",
    ]


def test_a_line_is_its_text() -> None:
    line = StatusLine("all is well", "trial.well", {"count": 3})
    assert write_rows([line.encode()]) == ["all is well"]
