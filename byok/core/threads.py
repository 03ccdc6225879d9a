"""How work is run: in a thread, inline where it takes no time, or to its end."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Protocol, TypeVar

T = TypeVar("T")


class Runner(Protocol):
    """Runs a function where it disturbs nobody; `asyncio.to_thread` is one."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]:
        """Return what the function returned."""
        ...


async def inline(work: Callable[[], T], /) -> T:
    """Run: at once."""
    return work()


async def to_the_end(work: Coroutine[None, None, T]) -> T:
    """Do this although whoever waits for it may leave.

    A client that closes its connection cancels its request, which may be the one that
    opens files or closes them. A thread would go on opening what nobody closes.
    """
    return await asyncio.shield(asyncio.ensure_future(work))
