"""Works run one after another, and to their end."""

import asyncio

import pytest

from byok.search.index.workspace.sync import SerialTasks


class Slow:
    """Works that take until they are let go; says in which order they did what."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.go = asyncio.Event()

    async def work(self) -> int:
        self.said.append("begun")
        await self.go.wait()
        self.said.append("done")
        return len(self.said)


async def test_serial_tasks_run_one_at_a_time_with_their_own_results() -> None:
    alone, slow = SerialTasks(), Slow()
    both = asyncio.gather(alone.run(slow.work), alone.run(slow.work))
    await asyncio.sleep(0)
    slow.go.set()
    assert [*await both] == [2, 4]
    assert slow.said == ["begun", "done"] * 2


async def test_serial_tasks_survive_a_caller_that_does_not_wait() -> None:
    alone, slow = SerialTasks(), Slow()
    asked = asyncio.ensure_future(alone.run(slow.work))
    while not slow.said:
        await asyncio.sleep(0)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    slow.go.set()
    assert await alone.run(slow.work) == 4


async def test_serial_tasks_go_on_after_an_error() -> None:
    async def bad() -> None:
        raise ValueError

    alone, slow = SerialTasks(), Slow()
    slow.go.set()
    with pytest.raises(ValueError):
        await alone.run(bad)
    assert await alone.run(slow.work) == 2


async def test_serial_tasks_are_cancelled_by_close() -> None:
    alone, slow = SerialTasks(), Slow()
    asked = asyncio.ensure_future(alone.run(slow.work))
    while not slow.said:
        await asyncio.sleep(0)
    await alone.close()
    assert asked.cancelled() or (await asyncio.wait([asked]))[0]
    assert slow.said == ["begun"]
