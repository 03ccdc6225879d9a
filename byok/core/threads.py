"""Runners: how a function is run, in a thread, or inline where it takes no time."""

from collections.abc import Awaitable, Callable
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
