"""What is noted of a request, and who can note it."""

import asyncio

import pytest

from byok.core.events import Usage
from byok.core.record import (
    RequestRecord,
    begin_record,
    current_record,
    no_record,
)


async def test_a_record_belongs_to_the_task_that_answers() -> None:
    async def answer(name: str) -> str:
        begin_record(RequestRecord(name))
        await asyncio.sleep(0)
        await asyncio.to_thread(note)
        return f"{current_record().request_id} {current_record().attempts}"

    def note() -> None:
        current_record().attempts += 1

    told = await asyncio.gather(answer("a"), answer("b"))
    assert [*told] == ["a 1", "b 1"]


def test_what_is_done_apart_is_in_no_record() -> None:
    record = begin_record(RequestRecord())
    with pytest.raises(ValueError, match="inside"), no_record():
        current_record().note_attempt(b"")
        raise ValueError("inside")
    assert record.attempts == 0
    assert current_record() is record


def test_record_total_usage_is_that_of_the_answer_and_of_own_questions() -> None:
    record = RequestRecord()
    assert record.total_usage is None
    record.note_own_usage("one", "small", Usage(10, 1))
    record.note_own_usage("one", "small", Usage(5, 1))
    record.note_own_usage("two", "small", Usage(1, 1))
    assert record.total_usage == Usage(16, 3)
    record.usage = Usage(100, 10, 50)
    assert record.total_usage == Usage(116, 13, 50)
    assert record.own_usage == {
        ("one", "small"): Usage(15, 2),
        ("two", "small"): Usage(1, 1),
    }
