"""What is noted of a request, and who can note it."""

import asyncio

from byok.events import Usage
from byok.record import Record, begin_record, current_record
from tests.fakes.clock import Clock


def test_a_request_that_asked_nobody_has_nothing_to_tell() -> None:
    assert str(Record("r1", "/chat", first_byte=1.0, attempts=1)) == ""


def test_what_an_upstream_did_is_one_line() -> None:
    record = Record(model="byok:one:m", clock=(clock := Clock()))
    clock.now += 0.25
    record.note_first_byte()
    clock.now += 1
    record.note_first_byte()
    assert record.seconds == 1.25
    assert str(record) == "byok:one:m first=250ms"
    record.usage, record.attempts, record.repairs = Usage(1200, 30, 1000), 2, 1
    record.failure = "upstream_cut"
    assert str(record) == (
        "byok:one:m first=250ms in=1200 cached=1000 out=30 attempts=2 repairs=1 "
        "error=upstream_cut"
    )


async def test_a_record_belongs_to_the_task_that_answers() -> None:
    async def answer(name: str) -> str:
        begin_record(Record(name))
        await asyncio.sleep(0)
        await asyncio.to_thread(noted)
        return f"{current_record().request_id} {current_record().attempts}"

    def noted() -> None:
        current_record().attempts += 1

    told = await asyncio.gather(answer("a"), answer("b"))
    assert [*told] == ["a 1", "b 1"]


def test_outside_of_any_request_notes_are_lost() -> None:
    current_record().attempts += 1
    assert current_record().attempts == 0
