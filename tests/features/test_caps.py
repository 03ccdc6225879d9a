"""What may begin under caps, and what counts."""

import asyncio
import logging
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from byok.core.events import Usage
from byok.core.platform.paths import find_paths
from byok.core.record import RequestRecord
from byok.dialects.model_facts import Price
from byok.features.base import PASS, Asking, Supplies, Verdict
from byok.features.caps import (
    Cap,
    CapKeeper,
    Ledger,
    Period,
    Unit,
    day_of,
    list_caps,
)
from byok.features.journal.usage import JournalSums, day_span
from byok.features.settings import CapSettings
from byok.features.status import Meter, StatusLine
from byok.settings import Settings
from tests.fakes.clock import Clock
from tests.fakes.feature_supplies import make_site
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
            Supplies(
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


async def test_a_request_that_asked_no_model_gives_its_place_back(
    path: Path, clock: Clock
) -> None:
    caps = Caps(clock, requests_per_day=1)
    record, _ = await caps.begin()
    record.model, record.attempts = "", 0
    caps.end(record)
    assert (await caps.ask()).refusal is None


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
    requests = Caps(clock, requests_per_day=1)
    assert (await requests.ask(model="free")).refusal is None
    assert (await requests.ask(model="free")).refusal is not None


async def test_midnight_begins_a_new_day_and_a_clock_set_back_the_old_one(
    path: Path, clock: Clock
) -> None:
    caps = Caps(clock, requests_per_day=1)
    _, midnight = day_span(day_of(NOW))
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
    _, midnight = day_span(day_of(NOW))
    clock.now = midnight - 1
    record, _ = await caps.begin()
    clock.now = midnight + 5
    caps.end(record, Usage(500, 0))
    assert await caps.report() == {"tokens_per_day": 0}
    clock.now = midnight - 1
    assert await caps.report() == {"tokens_per_day": 500}


async def test_an_answer_over_midnight_takes_no_place_of_the_new_day(
    path: Path, clock: Clock
) -> None:
    caps = Caps(clock, requests_per_day=1)
    _, midnight = day_span(day_of(NOW))
    clock.now = midnight - 1
    record, _ = await caps.begin()
    clock.now = midnight
    assert await caps.report() == {"requests_per_day": 0}
    assert (await caps.ask()).refusal is None
    caps.end(record)


async def test_what_was_written_before_there_were_caps_counts_once(
    path: Path, clock: Clock
) -> None:
    """A request that ends while they begin is not among what was written."""
    caps = Caps(clock)
    record, _ = await caps.begin()
    write_journal(path, [BEFORE])
    caps.set(requests_per_day=3)
    caps.end(record, Usage(1, 1))
    write_journal(path, [BEFORE, BEFORE])
    assert await caps.report() == {"requests_per_day": 2}


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
    assert await caps.report() == {}


async def test_what_has_no_token_does_not_count(path: Path, clock: Clock) -> None:
    caps = Caps(clock, requests_per_day=2)
    record, _ = await caps.begin()
    record.trusted = False
    caps.end(record, Usage(1, 1))
    assert await caps.report() == {"requests_per_day": 0}


ONE = JournalSums(1, 110, 0.25)
BEFORE = entry(input_tokens=100, output_tokens=10, conversation="one")
DAY = day_of(NOW)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


async def test_what_this_run_writes_does_not_count_twice(journal: Path) -> None:
    write_journal(journal, [BEFORE])
    ledger = Ledger(journal)
    await ledger.look_up(DAY, "one")
    ledger.add(DAY, "one", ONE)
    ledger.add(DAY, "late", ONE)
    write_journal(journal, [BEFORE, BEFORE._replace(conversation="late")])
    await asyncio.gather(*(ledger.look_up(DAY, "late") for _ in range(8)))
    assert ledger.of_day(DAY) == JournalSums(3, 330, 0.75)
    assert ledger.of_conversation("late") == ONE
    assert ledger.of_conversation("one") == JournalSums(2, 220, 0.5)


async def test_a_conversation_that_was_forgotten_is_found_in_the_journal(
    journal: Path,
) -> None:
    ledger = Ledger(journal, max_conversations=2)
    for name in ("one", "two", "three"):
        await ledger.look_up(DAY, name)
        ledger.add(DAY, name, ONE)
    write_journal(journal, [BEFORE])
    ledger.add(DAY, "one", ONE)  # it began before, so the journal will have it
    await ledger.look_up(DAY, "one")
    assert ledger.of_conversation("one") == ONE


async def test_a_conversation_with_a_long_id_is_found_in_the_journal(
    journal: Path,
) -> None:
    write_journal(journal, [BEFORE._replace(conversation="c" * 200)])
    ledger = Ledger(journal)
    await ledger.look_up(DAY, "c" * 300)
    assert ledger.of_conversation("c" * 300) == ONE


async def test_a_journal_that_cannot_be_read_is_told_once(
    journal: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal.write_bytes(b"what somebody left here" * 500)
    ledger = Ledger(journal)
    await ledger.look_up(DAY, "one")
    ledger.add(DAY, "one", ONE)
    assert ledger.of_day(DAY) == ONE
    told = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert ["caps count from now on" in r.getMessage() for r in told] == [True]


SPENT = JournalSums(8, 5000, 1.5)


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
    assert cap.measure(SPENT, running=1) == used
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


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "much"])
def test_a_cap_is_a_number_from_0(value: object) -> None:
    with pytest.raises(ValidationError):
        CapSettings.model_validate({"usd_per_day": value})
