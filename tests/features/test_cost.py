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


@pytest.mark.parametrize(
    "record",
    [
        finished(usage=Usage(MILLION), first_byte=0.1),
        finished(),
        finished(status=CLIENT_GONE, first_byte=0.1),
        finished(UpstreamTimeout("slow")),
        finished(UpstreamRefused("no")),
    ],
)
def test_a_model_that_is_free_costs_nothing_whatever_became_of_it(
    record: RequestRecord,
) -> None:
    assert cost_of(record, lambda upstream, model: FREE) == 0.0


def test_of_a_model_beside_it_that_is_not_free_nothing_is_known() -> None:
    record = finished(usage=Usage(9), uncounted=[("one", "small")])
    assert cost_of(record, lambda upstream, model: FREE) == 0.0
    prices = {("one", "m"): FREE}
    assert cost_of(record, lambda *asked: prices.get(asked)) is None


def test_one_unknown_price_makes_the_cost_unknown() -> None:
    known = {("one", "m"): PRICE}
    record = finished(usage=Usage(MILLION), own_usage=OWN)
    assert cost_of(record, lambda *asked: known.get(asked)) is None
    for error in (UpstreamRefused("no"), ConnectFailed("no")):  # though it failed
        assert cost_of(finished(error), lambda upstream, model: None) is None


@pytest.mark.parametrize(
    ("dollars", "unpriced", "text"),
    [
        (1.2, 61, "$1.20 + 61 requests of unknown price"),
        (0.25, 1, "$0.2500 + 1 request of unknown price"),
        (0.0, 61, "61 requests of unknown price"),
        (0.0, 0, "$0"),
        (1234.5, 0, "$1,234.50"),
    ],
)
def test_a_sum_never_calls_unknown_costs_nothing(
    dollars: float, unpriced: int, text: str
) -> None:
    assert write_cost(dollars, unpriced) == text
