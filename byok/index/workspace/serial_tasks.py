"""Runs changes one at a time, and to the end even if the caller is cancelled.

A client that disconnects cancels its request; a change that is half done would be worse
than one that is completed.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class SerialTasks:
    """Runs coroutines one after another, each in its own asyncio task."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of some work; cancelling the caller does not stop it."""

        async def alone() -> T:
            async with self._lock:
                return await work()

        task = asyncio.ensure_future(alone())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Cancel what still runs, and wait for it."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
