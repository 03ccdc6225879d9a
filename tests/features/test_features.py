"""The list of features: its rows, and how their hooks work together."""

import pytest
from msgspec import to_builtins

from byok.core.errors import BadRequest
from byok.core.record import RequestRecord
from byok.features import ROWS, FeatureRow
from byok.features.base import PASS, Asking, Feature, Verdict
from byok.features.running import Features
from byok.features.status import Meter, StatusLine, write_rows
from tests.fakes.feature_supplies import make_site

ASKING = Asking(RequestRecord("r1"), "fake", "one")
HOOKS = {name for name in vars(Feature) if not name.startswith("_")}


class Saying(Feature):
    """A feature with one verdict and one line."""

    def __init__(self, verdict: Verdict, text: str = "") -> None:
        super().__init__(make_site())
        self.verdict = verdict
        self.text = text
        self.asked = 0
        self.closed = False

    async def admit(self, asking: Asking, /) -> Verdict:
        self.asked += 1
        return self.verdict

    async def status(self) -> list[StatusLine] | None:
        return [StatusLine(self.text)] if self.text else None

    def close(self) -> None:
        self.closed = True


class Failing(Saying):
    """A feature in which everything fails."""

    async def admit(self, asking: Asking, /) -> Verdict:
        raise OSError

    def close(self) -> None:
        raise OSError


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_part_of_a_row_is_there(row: FeatureRow) -> None:
    if row.settings:
        assert row.load_settings()()
    if row.running:
        kind = row.load_running()
        own = {name for name in vars(kind) if not name.startswith("_")}
        assert issubclass(kind, Feature)
        assert own & HOOKS  # else it would do nothing


async def test_notices_add_up_and_a_refusal_is_the_last_word() -> None:
    refusal = BadRequest("No.")
    first, second = Saying(Verdict(notices=("a",))), Saying(Verdict(notices=("b",)))
    refusing, last = Saying(Verdict(refusal)), Saying(PASS)
    assert await Features({"one": first, "two": second}).admit(ASKING) == Verdict(
        notices=("a", "b")
    )
    features = Features({"one": first, "no": refusing, "last": last})
    assert (await features.admit(ASKING)).refusal is refusal
    assert last.asked == 0


async def test_a_request_is_not_admitted_where_that_cannot_be_decided() -> None:
    with pytest.raises(OSError):
        await Features({"failing": Failing(PASS)}).admit(ASKING)


async def test_only_what_has_something_to_show_is_shown() -> None:
    features = Features({"quiet": Saying(PASS), "loud": Saying(PASS, "here")})
    shown = await features.status()
    assert [row["text"] for row in shown.pop("loud")] == ["here"]
    assert shown == {}


def test_all_are_closed_though_one_fails() -> None:
    first, last = Saying(PASS), Saying(PASS)
    features = Features({"first": first, "failing": Failing(PASS), "last": last})
    with pytest.raises(OSError):
        features.close()
    assert (first.closed, last.closed) == (True, True)


def test_meters_tell_what_is_used_and_what_does_not_count() -> None:
    rows = [
        Meter("requests_per_day", 12, 1000),
        Meter("usd_per_day", 1.5, 5.0, in_dollars=True, unpriced=3),
        Meter("usd_per_day", 0.0, 5.0, in_dollars=True, unpriced=1),
        Meter("tokens_per_conversation", None, 10_000),
    ]
    assert write_rows(map(to_builtins, rows)) == [
        "requests_per_day: 12 of 1,000 used",
        "usd_per_day: $1.50 + 3 requests of unknown price, of $5.00 used",
        "usd_per_day: 1 request of unknown price, of $5.00 used",
        "tokens_per_conversation: 10,000 at most",
    ]
