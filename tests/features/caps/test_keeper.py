"""What may begin under caps, and what counts."""

import asyncio
import logging
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from byok.core.events import Usage
from byok.core.platform.paths import find_paths
from byok.core.record import RequestRecord
from byok.dialects.model_facts import Price
from byok.features.base import PASS, Asking, Verdict
from byok.features.caps.feature import CapKeeper, bounds_of, day_of
from byok.features.status import Meter, StatusLine
from byok.settings import Settings
from tests.fakes.clock import Clock
from tests.fakes.feature_supplies import GivenSupplies, make_site
from tests.fakes.journal_entries import NOW, entry, write_journal

PRICES = {"priced": Price(1.0, 10.0), "free": Price(0.0, 0.0)}
_numbers = count(1)


class Caps:
    """A keeper whose time a test sets."""

    def __init__(self, clock: Clock, *, journals: bool = True, **caps: Any) -> None:
        self.keeper = CapKeeper(make_site(clock))
        self.clock = clock
        self.set(journals=journals, **caps)

    def set(self, *, journals: bool = True, **caps: Any) -> None:
        self.keeper.configure(
            GivenSupplies(
                Settings.model_validate(
                    {"caps": caps, "journal": {"keep_days": int(journals)}}
                ),
                lambda _, model: PRICES.get(model),
            )
        )

    async def begin(
        self, talk: str = "", model: str = "priced", *, shown: bool = True
    ) -> tuple[RequestRecord, Verdict]:
        record = RequestRecord(f"r{next(_numbers)}", trusted=True, clock=self.clock)
        record.conversation = talk
        admitted = await self.keeper.admit(
            Asking(record, "fake", model, shows_notices=shown)
        )
        if admitted.refusal is None:
            record.upstream, record.model, record.attempts = "fake", model, 1
        return record, admitted

    def end(self, record: RequestRecord, usage: Usage | None = None) -> None:
        record.usage = usage
        record.finish(200 if usage else 499)
        self.keeper.request_finished(record)

    async def ask(
        self, talk: str = "", model: str = "priced", tokens: int = 100
    ) -> Verdict:
        record, admitted = await self.begin(talk, model)
        if admitted.refusal is None:
            self.end(record, Usage(tokens, 0))
        else:
            record.finish(200)
            self.keeper.request_finished(record)
        return admitted

    async def report(self) -> dict[str, Any]:
        return {meter.name: meter.used for meter in await self.meters()}

    async def meters(self) -> list[Meter]:
        rows = await self.keeper.status()
        return [row for row in rows if isinstance(row, Meter)]


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
def path() -> Path:
    path = find_paths().journal
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


async def test_without_caps_the_journal_is_not_read(path: Path, clock: Clock) -> None:
    path.write_bytes(b"what somebody left here" * 500)
    caps = Caps(clock)
    assert await caps.ask() == PASS
    assert await caps.report() == {}


async def test_requests_are_capped_exactly(path: Path, clock: Clock) -> None:
    caps = Caps(clock, requests_per_day=3)
    answers = [await caps.ask() for _ in range(5)]
    assert [a.refusal is None for a in answers] == [True, True, True, False, False]
    assert await caps.report() == {"requests_per_day": 3}


async def test_requests_side_by_side_are_capped_exactly(
    path: Path, clock: Clock
) -> None:
    caps = Caps(clock, requests_per_day=10)
    begun = await asyncio.gather(*(caps.begin() for _ in range(32)))
    assert sum(admitted.refusal is None for _, admitted in begun) == 10
    for record, admitted in begun:
        if admitted.refusal is None:
            caps.end(record, Usage(1, 1))
    assert await caps.report() == {"requests_per_day": 10}


async def test_tokens_are_exceeded_by_what_runs_side_by_side(
    path: Path, clock: Clock
) -> None:
    caps = Caps(clock, tokens_per_day=100)
    begun = await asyncio.gather(*(caps.begin() for _ in range(32)))
    assert all(admitted.refusal is None for _, admitted in begun)
    for record, _ in begun:
        caps.end(record, Usage(90, 10))
    assert await caps.report() == {"tokens_per_day": 3200}
    assert (await caps.ask()).refusal is not None


async def test_a_request_that_asked_no_model_gives_its_place_back(
    path: Path, clock: Clock
) -> None:
    caps = Caps(clock, requests_per_day=1)
    record, _ = await caps.begin()
    record.model, record.attempts = "", 0
    caps.end(record)
    assert (await caps.ask()).refusal is None


async def test_cancelled_answers_count_as_far_as_they_are_known(
    path: Path, clock: Clock
) -> None:
    caps = Caps(clock, requests_per_day=9, tokens_per_day=999)
    record, _ = await caps.begin()
    caps.end(record)
    assert await caps.report() == {"requests_per_day": 1, "tokens_per_day": 0}


async def test_a_conversation_has_caps_of_its_own(path: Path, clock: Clock) -> None:
    caps = Caps(clock, tokens_per_conversation=100)
    assert (await caps.ask("one")).refusal is None
    refusal = (await caps.ask("one")).refusal
    assert refusal and "begin a new conversation" in refusal.hint
    assert (await caps.ask("two")).refusal is None
    for _ in range(3):  # names no conversation
        assert (await caps.ask("")).refusal is None


async def test_dollars_count_where_prices_are_known(path: Path, clock: Clock) -> None:
    caps = Caps(clock, usd_per_day=0.0002)
    for _ in range(3):
        assert (await caps.ask(model="unknown")).refusal is None
    await caps.ask(tokens=200)
    assert (await caps.ask()).refusal is not None
    assert (await caps.ask(model="unknown")).refusal is not None
    assert (await caps.ask(model="free")).refusal is None
    [meter] = await caps.meters()
    assert meter.unpriced == 3
    assert meter.used == pytest.approx(0.0002)


async def test_midnight_begins_a_new_day_and_a_clock_set_back_the_old_one(
    path: Path, clock: Clock
) -> None:
    caps = Caps(clock, requests_per_day=1)
    _, midnight = bounds_of(day_of(NOW))
    clock.now = midnight - 1
    assert (await caps.ask()).refusal is None
    assert (await caps.ask()).refusal is not None
    clock.now = midnight
    assert (await caps.ask()).refusal is None
    assert (await caps.ask()).refusal is not None
    clock.now = midnight - 1
    assert (await caps.ask()).refusal is not None
    clock.now = midnight + 86_400 * 400
    assert (await caps.ask()).refusal is None


async def test_an_answer_over_midnight_counts_for_the_day_of_its_begin(
    path: Path, clock: Clock
) -> None:
    caps = Caps(clock, tokens_per_day=100)
    _, midnight = bounds_of(day_of(NOW))
    clock.now = midnight - 1
    record, _ = await caps.begin()
    clock.now = midnight + 5
    caps.end(record, Usage(500, 0))
    assert await caps.report() == {"tokens_per_day": 0}
    clock.now = midnight - 1
    assert await caps.report() == {"tokens_per_day": 500}


async def test_earlier_runs_count(path: Path, clock: Clock) -> None:
    write_journal(path, [entry(conversation="one"), entry(conversation="two")])
    caps = Caps(clock, requests_per_day=3, requests_per_conversation=1)
    assert (await caps.ask("one")).refusal is not None
    assert (await caps.ask("three")).refusal is None
    assert (await caps.ask("four")).refusal is not None


@pytest.mark.parametrize(
    ("caps", "tokens", "told"),
    [
        ({"requests_per_day": 10}, 1, [0] * 7 + [1, 0, 0]),
        ({"tokens_per_day": 1000}, 100, [0] * 8 + [1, 0]),
        ({"requests_per_day": 10, "requests_per_conversation": 10}, 1,
         [0] * 7 + [2, 0, 0]),
    ],
)  # fmt: skip
async def test_a_near_cap_is_told_once(
    path: Path, clock: Clock, caps: dict[str, Any], tokens: int, told: list[int]
) -> None:
    keeper = Caps(clock, **caps)
    answers = [await keeper.ask("one", tokens=tokens) for _ in told]
    assert [len(answer.notices) for answer in answers] == told


async def test_a_warning_waits_for_an_answer_that_shows_it(
    path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caps = Caps(clock, requests_per_day=5)
    for _ in range(4):
        record, admitted = await caps.begin(shown=False)
        assert admitted.notices == ()
        caps.end(record)
    _, admitted = await caps.begin()
    assert ["5 of 5 requests today" in text for text in admitted.notices] == [True]
    logged = [r for r in caplog.records if "cap is near" in r.getMessage()]
    assert len(logged) == 1


async def test_caps_without_a_journal_are_told_and_hold_in_memory(
    path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    caps = Caps(clock, journals=False, requests_per_day=1)
    assert "the journal is off" in caplog.text
    assert (await caps.ask()).refusal is None
    assert (await caps.ask()).refusal is not None
    [_, line] = await caps.keeper.status()
    assert isinstance(line, StatusLine)
    assert line.key == "caps.uncounted"


async def test_caps_change_while_requests_run(path: Path, clock: Clock) -> None:
    caps = Caps(clock, requests_per_day=1)
    record, _ = await caps.begin()
    caps.set(requests_per_day=2)
    second, admitted = await caps.begin()
    assert admitted.refusal is None
    assert (await caps.ask()).refusal is not None
    caps.set()
    assert (await caps.ask()).refusal is None
    caps.end(record, Usage(1, 1))
    caps.end(second, Usage(1, 1))
    assert not caps.keeper._begun
    assert not caps.keeper._begun_in


async def test_what_has_no_token_does_not_count(path: Path, clock: Clock) -> None:
    caps = Caps(clock, requests_per_day=2)
    record, _ = await caps.begin()
    record.trusted = False
    caps.end(record, Usage(1, 1))
    assert await caps.report() == {"requests_per_day": 0}


async def test_a_request_is_admitted_once(path: Path, clock: Clock) -> None:
    caps = Caps(clock, requests_per_day=2)
    record, _ = await caps.begin()
    await caps.keeper.admit(Asking(record, "fake", "priced"))
    assert await caps.report() == {"requests_per_day": 1}
    caps.end(record, Usage(1, 1))
    assert not caps.keeper._begun_in
