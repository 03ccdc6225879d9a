"""The clock."""

from datetime import UTC, datetime

import pytest

from byok.doctor.machine import check_clock
from byok.doctor.results import CheckState
from byok.doctor.surroundings import Machine
from byok.upstream.model_table import packed_table
from tests.fakes.doctors import surroundings, upstream_box, write_settings
from tests.fakes.upstream import FakeUpstream

MADE = datetime.combine(packed_table().day, datetime.min.time(), UTC).timestamp()
YEAR = 365 * 86_400


@pytest.mark.parametrize(
    ("now", "state"),
    [
        (0.0, CheckState.FAILURE),
        (MADE - YEAR, CheckState.FAILURE),
        (MADE + YEAR, CheckState.OK),
        (MADE + 40 * YEAR, CheckState.FAILURE),
    ],
)
async def test_a_clock_must_be_of_this_time(now: float, state: CheckState) -> None:
    async with surroundings(Machine(clock=lambda: now)) as around:
        result = await check_clock(around, "")
    assert result.state is state
    assert ("timedatectl" in result.cure) is (state is not CheckState.OK)


@pytest.mark.parametrize(
    ("ahead", "said"), [(3600.0, "60 min ahead of that"), (-7200.0, "120 min behind")]
)
async def test_a_clock_is_compared_with_that_of_a_server(
    fake: FakeUpstream, ahead: float, said: str
) -> None:
    import time

    write_settings(*upstream_box(fake.url))
    machine = Machine(clock=lambda: time.time() + ahead)
    async with surroundings(machine) as around:
        result = await check_clock(around, "")
    assert result.state is CheckState.WARNING
    assert said in result.found


async def test_a_clock_like_the_servers_is_good(fake: FakeUpstream) -> None:
    write_settings(*upstream_box(fake.url))
    async with surroundings() as around:
        result = await check_clock(around, "")
    assert result.state is CheckState.OK
    assert "of 127.0.0.1" in result.found


async def test_settings_that_cannot_be_used_are_no_matter() -> None:
    write_settings("[serverr]")
    async with surroundings() as around:
        assert (await check_clock(around, "")).state is CheckState.OK
