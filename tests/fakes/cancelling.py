"""Cancels work at a chosen place where it waits."""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any


class _Counted:
    """Awaits work; its task is cancelled when the work waits for the n-th time."""

    def __init__(self, work: Coroutine[Any, Any, object], number: int) -> None:
        self._work = work
        self._left = number

    def __await__(self) -> Generator[Any, Any, None]:
        task = asyncio.current_task()
        assert task is not None
        error: BaseException | None = None
        while True:
            try:
                waited = self._work.throw(error) if error else self._work.send(None)
            except StopIteration:
                return
            if not self._left:
                task.cancel()
            self._left -= 1
            try:
                yield waited
            except BaseException as caught:
                error = caught
            else:
                error = None


async def cancel_at(number: int, work: Coroutine[Any, Any, object]) -> bool:
    """Run work, and cancel it when it waits for the n-th time, counted from 0.

    Returns whether it was cancelled; else it ended before, and its error is raised.
    """

    async def run() -> None:
        await _Counted(work, number)

    task = asyncio.ensure_future(run())
    await asyncio.wait([task])
    if task.cancelled():
        return True
    task.result()
    return False
