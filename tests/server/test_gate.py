"""How many answers may be under way, who waits, and how the daemon's end is told."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import pytest

from byok.core.errors import NotReady
from byok.server.admission import Gate
from tests.fakes.clock import run_at_once
from tests.fakes.patience import PATIENCE

T = TypeVar("T")


def soon(work: Awaitable[T]) -> Awaitable[T]:
    """Wait for something that must happen, but not for ever."""
    return asyncio.wait_for(work, PATIENCE)


class Visitor:
    """Enters the gate as a task of its own and stays until told to leave."""

    def __init__(self, gate: Gate, name: str = "", seen: list[str] | None = None):
        self.inside = asyncio.Event()
        self.leave = asyncio.Event()
        self._name = name
        self._seen = seen if seen is not None else []
        self.task = asyncio.ensure_future(self._visit(gate))

    async def _visit(self, gate: Gate) -> None:
        async with gate.enter():
            self._seen.append(self._name)
            self.inside.set()
            async with gate.raise_on_stop():
                await self.leave.wait()


async def turns(count: int = 5) -> None:
    """Let every other task run until it waits."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_gate_refuses_one_more_than_the_limit() -> None:
    gate = Gate(streams=2, waiting=0, seconds=5)
    async with gate.enter(), gate.enter():
        with pytest.raises(NotReady) as caught:
            async with gate.enter():
                pass
    assert caught.value.code == "too_many_streams"
    assert (caught.value.status, caught.value.retryable) == (503, True)
    async with gate.enter():
        pass  # there is room again


async def test_gate_queue_is_served_in_order_and_is_limited() -> None:
    gate, seen = Gate(streams=1, waiting=2, seconds=5), list[str]()
    visitors = [Visitor(gate, name, seen) for name in "abcd"]
    await turns()
    with pytest.raises(NotReady, match="Too many"):
        await visitors[3].task
    assert seen == ["a"]
    for visitor in visitors[:3]:
        await soon(visitor.inside.wait())
        visitor.leave.set()
        await soon(visitor.task)
    assert seen == ["a", "b", "c"]


async def test_gate_newcomer_does_not_overtake_the_queue() -> None:
    gate, seen = Gate(streams=1, waiting=2, seconds=5), list[str]()
    first = Visitor(gate, "first", seen)
    second = Visitor(gate, "second", seen)
    await turns()
    first.leave.set()
    await first.task  # the place is free, but `second` has not run yet
    third = Visitor(gate, "third", seen)
    second.leave.set()
    third.leave.set()
    await soon(asyncio.gather(second.task, third.task))
    assert seen == ["first", "second", "third"]


async def test_gate_queue_timeout_frees_the_place() -> None:
    gate = Gate(streams=1, waiting=1, seconds=0.01)
    async with gate.enter():
        for _ in range(3):
            with pytest.raises(NotReady) as caught:
                async with gate.enter():
                    pass
            assert caught.value.code == "too_many_streams"


@pytest.mark.case("F15")
async def test_gate_client_that_leaves_the_queue_frees_the_place() -> None:
    gate = Gate(streams=1, waiting=1, seconds=5)
    first, second = Visitor(gate), Visitor(gate)
    await turns()
    second.task.cancel()
    await asyncio.gather(second.task, return_exceptions=True)
    third = Visitor(gate)
    first.leave.set()
    await soon(third.inside.wait())
    third.leave.set()
    await soon(asyncio.gather(first.task, third.task))


async def test_gate_does_not_mistake_a_timeout_of_the_answer_for_its_own() -> None:
    gate = Gate(streams=1, waiting=0, seconds=5)
    with pytest.raises(TimeoutError):
        async with gate.enter(), gate.raise_on_stop():
            raise TimeoutError


def test_gate_stop_waits_for_answers_and_then_ends_them() -> None:
    async def stop() -> None:
        gate = Gate(streams=2, waiting=0, seconds=5)
        quick, endless = Visitor(gate), Visitor(gate)
        await turns()
        stopping = asyncio.ensure_future(gate.stop(grace=10))
        await asyncio.sleep(9.9)
        quick.leave.set()
        await quick.task  # it ends as if nothing were
        await stopping
        with pytest.raises(NotReady) as caught:
            await endless.task
        assert caught.value.code == "shutting_down"

    run_at_once(stop())


@pytest.mark.parametrize("count", range(4))
async def test_gate_stop_ends_an_answer_whose_head_has_just_come(count: int) -> None:
    """It goes from one scope to the next in the turn of the loop that ends all."""
    gate, head = Gate(streams=1, waiting=0, seconds=5), asyncio.Event()

    async def pass_on() -> None:
        async with gate.enter():
            async with gate.raise_on_stop():
                await head.wait()
            async with gate.raise_on_stop():
                await asyncio.Event().wait()

    answer = asyncio.ensure_future(pass_on())
    await turns()
    stopping = asyncio.ensure_future(gate.stop(grace=0))
    await turns(count)
    head.set()
    await soon(stopping)
    with pytest.raises(NotReady) as caught:
        await soon(answer)
    assert caught.value.code == "shutting_down"


async def test_gate_queue_is_refused_when_byok_stops() -> None:
    gate, seen = Gate(streams=1, waiting=1, seconds=5), list[str]()
    first = Visitor(gate, "first", seen)
    second = Visitor(gate, "second", seen)
    await turns()
    await soon(gate.stop(grace=0))
    for visitor in (first, second):
        with pytest.raises(NotReady) as caught:
            await soon(visitor.task)
        assert caught.value.code == "shutting_down"
    assert seen == ["first"]
