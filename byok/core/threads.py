"""Ways to run work: in a thread, inline, or protected from cancellation."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Protocol, TypeVar

T = TypeVar("T")


class Runner(Protocol):
    """Runs a function without blocking others; `asyncio.to_thread` is one."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]:
        """Call `work`, and return its result."""
        ...


async def inline(work: Callable[[], T], /) -> T:
    """Call `work` in this thread: it takes no time."""
    return work()


async def to_the_end(work: Coroutine[None, None, T]) -> T:
    """Finish `work` even if the caller is cancelled.

    A client that closes its connection cancels its request, which may just be opening
    or closing files. Their thread would go on, and open files that nobody closes.
    """
    return await asyncio.shield(asyncio.ensure_future(work))
