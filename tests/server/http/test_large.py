"""Large bodies wait for each other; small ones wait for nobody."""

import asyncio
import threading

from byok.server.http.body import LargeBodies


async def test_small_bodies_are_parsed_in_the_event_loop() -> None:
    bodies = LargeBodies(large=10, at_once=1)
    async with bodies.room(10), bodies.room(9) as run:
        assert await run(threading.get_ident) == threading.get_ident()


async def test_a_large_or_unknown_one_is_understood_elsewhere() -> None:
    bodies = LargeBodies(large=10, at_once=2)
    async with bodies.room(10) as run, bodies.room(None) as same:
        here = threading.get_ident()
        assert await run(threading.get_ident) != here
        assert await same(threading.get_ident) != here


async def test_large_bodies_are_parsed_a_few_at_once() -> None:
    bodies = LargeBodies(large=10, at_once=2)
    inside = most = 0

    async def one() -> None:
        nonlocal inside, most
        async with bodies.room(99):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.001)
            inside -= 1

    await asyncio.gather(*(one() for _ in range(10)))
    assert (most, inside) == (2, 0)
