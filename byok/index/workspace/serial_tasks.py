"""Work that is done one at a time, and to its end even if nobody waits for it any more.

A client that hangs up cancels what it asked for; half of it done is worse than none.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class SerialTasks:
    """Runs works one after another, each in a task of its own."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what the work does; who is cancelled here does not break it off."""

        async def alone() -> T:
            async with self._lock:
                return await work()

        task = asyncio.ensure_future(alone())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Break off what still runs."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
