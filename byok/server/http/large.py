"""Large bodies: two at a time, parsed in a thread.

A conversation of tens of megabytes takes seconds to read and ten times its size in
memory while that goes on. Meanwhile every other client is to be answered at once.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from byok.threads import Runner, inline

LARGE = 2**20  # bytes
_AT_ONCE = 2


class LargeBodies:
    """Admits small bodies at once and large ones two at a time."""

    def __init__(self, large: int = LARGE, at_once: int = _AT_ONCE) -> None:
        self._large = large
        self._rooms = asyncio.Semaphore(at_once)

    def room(self, length: int | None) -> AbstractAsyncContextManager[Runner]:
        """Hold a place while a body of this length is read and understood.

        `length` is None where a client does not tell it.
        """
        if length is not None and length < self._large:
            return _AT_ONCE_HERE
        return self._wait_for_room()

    @asynccontextmanager
    async def _wait_for_room(self) -> AsyncIterator[Runner]:
        async with self._rooms:
            yield asyncio.to_thread


_AT_ONCE_HERE: AbstractAsyncContextManager[Runner] = nullcontext(inline)
