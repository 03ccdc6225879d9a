"""A timer that runs only after something happened."""

import asyncio

from byok.features.live.requests import Pulse
from tests.fakes.patience import PATIENCE


async def test_many_notes_are_one_act_and_none_is_none() -> None:
    acted = asyncio.Semaphore(0)
    pulse = Pulse(acted.release, 0.01)
    pulse.note()
    assert not pulse.due  # nobody wants it yet
    pulse.on = True
    for _ in range(10):
        pulse.note()
        assert pulse.due
    await asyncio.wait_for(acted.acquire(), PATIENCE)
    assert not pulse.due
    assert acted.locked()  # it acted once
    pulse.note()
    await asyncio.wait_for(acted.acquire(), PATIENCE)


async def test_a_pulse_that_was_stopped_does_not_act() -> None:
    acted = list[int]()
    pulse = Pulse(lambda: acted.append(1), 0)
    pulse.on = True
    pulse.note()
    pulse.stop()
    pulse.note()
    await asyncio.sleep(0.01)
    assert acted == []
    assert not pulse.due
