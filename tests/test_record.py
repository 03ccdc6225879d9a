"""What is noted of a request, and who can note it."""

import asyncio

from byok.errors import UpstreamGarbled
from byok.record import Hop, RequestOutcome, RequestRecord, begin_record, current_record
from tests.fakes.clock import Clock


def test_only_the_first_byte_of_an_answer_counts() -> None:
    record = RequestRecord(clock=(clock := Clock()))
    clock.now += 0.25
    record.note_first_byte()
    clock.now += 1
    record.note_first_byte()
    assert record.first_byte == 0.25


def test_the_duration_stands_still_after_the_end() -> None:
    record = RequestRecord(clock=(clock := Clock()))
    clock.now += 1
    assert record.seconds == 1
    record.finish(200)
    clock.now += 1
    assert record.seconds == 1


def test_the_outcome_is_told_by_error_and_status() -> None:
    record = RequestRecord()
    outcomes = [record.outcome]
    record.finish(200)
    outcomes.append(record.outcome)
    record.note_error(UpstreamGarbled("no JSON"))
    outcomes.append(record.outcome)
    record.finish(499)
    outcomes.append(record.outcome)
    told = [
        RequestOutcome.OPEN,
        RequestOutcome.OK,
        RequestOutcome.FAILED,
        RequestOutcome.CANCELLED,
    ]
    assert outcomes == told
    assert record.error == UpstreamGarbled("").code
    assert record.error_class == "UpstreamGarbled"


def test_a_model_has_an_id_where_one_was_asked() -> None:
    assert RequestRecord().model_id == ""
    assert RequestRecord(upstream="one", model="m").model_id == "byok:one:m"


def test_each_attempt_is_counted_and_tapped() -> None:
    record, seen = RequestRecord(), list[tuple[Hop, bytes]]()
    record.note_attempt(b"one")
    record.tap = lambda hop, data: seen.append((hop, data))
    record.note_attempt(b"two")
    assert record.attempts == 2
    assert seen == [(Hop.TO_UPSTREAM, b"two")]


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


def test_outside_of_any_request_notes_are_lost() -> None:
    current_record().attempts += 1
    assert current_record().attempts == 0
