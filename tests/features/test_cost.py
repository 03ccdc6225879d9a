"""A cost is what known prices say, or unknown; never a guess."""

import pytest

from byok.core.errors import (
    ByokError,
    ConnectFailed,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
)
from byok.core.events import Usage
from byok.core.record import CLIENT_GONE, RequestRecord
from byok.dialects.model_facts import FREE, Price
from byok.features.cost import cost_of, price_tokens, write_cost

MILLION = 1_000_000
PRICE = Price(3.0, 15.0, 0.3, 3.75)


@pytest.mark.parametrize(
    ("usage", "price", "dollars"),
    [
        (Usage(MILLION, MILLION), PRICE, 18.0),
        (Usage(MILLION, 0, MILLION), PRICE, 0.3),
        (Usage(MILLION, 0, 0, MILLION), PRICE, 3.75),
        (Usage(2 * MILLION, 0, MILLION), PRICE, 3.3),
        (Usage(), None, 0.0),
        (Usage(1), None, None),
        (Usage(0, 1), Price(3.0), None),
        (Usage(9), Price(3.0), 27 / MILLION),
        (Usage(9, 0, 9), Price(3.0, 15.0), None),
        (Usage(9, 0, 0, 9), Price(3.0, 15.0), None),
        (Usage(9, 9, 9), Price(0.0, 0.0), 0.0),
        (Usage(0, 0, MILLION), PRICE, 0.3),  # counts that contradict each other
    ],
    ids=str,
)
def test_tokens_cost_what_known_prices_say(
    usage: Usage, price: Price | None, dollars: float | None
) -> None:
    assert price_tokens(usage, price) == (dollars and pytest.approx(dollars))


def finished(
    error: ByokError | None = None, status: int = 200, **fields: object
) -> RequestRecord:
    record = RequestRecord(upstream="one", model="m", attempts=1)
    for name, value in fields.items():
        setattr(record, name, value)
    if error is not None:
        record.note_error(error)
    record.finish(status)
    return record


OWN = {("one", "small"): Usage(MILLION)}


@pytest.mark.parametrize(
    ("record", "dollars"),
    [
        (finished(attempts=0), 0.0),
        (finished(usage=Usage(MILLION), first_byte=0.1), 3.0),
        (finished(UpstreamGarbled("x"), usage=Usage(MILLION), first_byte=0.1), 3.0),
        (finished(usage=Usage(MILLION), own_usage=OWN), 6.0),
        (finished(own_usage=OWN), 3.0),
        (finished(usage=Usage(MILLION), uncounted=[("one", "small")]), None),
        (finished(), None),
        (finished(first_byte=0.1), None),
        (finished(first_byte=0.1, own_usage=OWN), None),
        (finished(status=CLIENT_GONE), None),
        (finished(status=CLIENT_GONE, own_usage=OWN), None),
        (finished(UpstreamTimeout("slow")), None),
        (finished(UpstreamRefused("no")), 0.0),
        (finished(UpstreamRefused("no"), own_usage=OWN), 3.0),
        (finished(UpstreamRefused("no"), first_byte=0.1), None),
        (finished(ConnectFailed("no")), 0.0),
    ],
)
def test_a_request_costs_what_all_its_models_took(
    record: RequestRecord, dollars: float | None
) -> None:
    assert cost_of(record, lambda upstream, model: PRICE) == dollars


def test_a_model_that_is_free_costs_nothing_whatever_became_of_it() -> None:
    wrong: list[str] = []
    for record in (
        finished(usage=Usage(MILLION), first_byte=0.1),
        finished(),
        finished(status=CLIENT_GONE, first_byte=0.1),
        finished(UpstreamTimeout("slow")),
        finished(UpstreamRefused("no")),
        finished(usage=Usage(9), uncounted=[("one", "small")]),
    ):
        if (cost := cost_of(record, lambda upstream, model: FREE)) != 0.0:
            wrong.append(f"{record}: {cost}")
    assert not wrong
    prices = {("one", "m"): FREE}
    asked_other = finished(usage=Usage(9), uncounted=[("one", "small")])
    assert cost_of(asked_other, lambda *asked: prices.get(asked)) is None


def test_a_failure_of_unknown_price_is_not_known_to_be_free() -> None:
    for error in (UpstreamRefused("no"), ConnectFailed("no")):
        assert cost_of(finished(error), lambda upstream, model: None) is None


def test_a_sum_never_calls_unknown_costs_nothing() -> None:
    wrong: list[str] = []
    for dollars, unpriced, text in (
        (1.2, 61, "$1.20 + 61 requests of unknown price"),
        (0.25, 1, "$0.2500 + 1 request of unknown price"),
        (0.0, 61, "61 requests of unknown price"),
        (0.0, 0, "$0"),
        (1234.5, 0, "$1,234.50"),
    ):
        if write_cost(dollars, unpriced) != text:
            wrong.append(f"{write_cost(dollars, unpriced)!r} is not {text!r}")
    assert not wrong


def test_one_unknown_price_makes_the_cost_unknown() -> None:
    prices = {("one", "m"): PRICE}
    record = finished(usage=Usage(MILLION), own_usage=OWN)
    assert cost_of(record, lambda *asked: prices.get(asked)) is None
