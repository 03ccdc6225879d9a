"""What the page reads as it changes: readers, and why one gets no more."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Protocol

from byok.core.chat import Json


class FeedEnd(StrEnum):
    """Why a page gets no more changes."""

    REPLACED = "replaced"  # too many others came
    SESSION = "session"
    STOPPING = "stopping"


class FeedReader:
    """Waits for changes. `seen` is the last version that was taken, 0 for none."""

    def __init__(self) -> None:
        self.seen = 0
        self.end: FeedEnd | None = None
        self.on_end: Callable[[], None] | None = None
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Signal that there is something new."""
        self._woken.set()

    def finish(self, why: FeedEnd) -> None:
        """End the reader; the first reason counts."""
        if self.end is None:
            self.end = why
            self.wake()
            if self.on_end is not None:
                self.on_end()

    async def wait(self, seconds: float) -> bool:
        """Wait for something new or the end; tell whether it came in time."""
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return False
        self._woken.clear()
        return True


class Feed(Protocol):
    """Something of which the page is sent what changes."""

    def open_reader(self) -> AbstractContextManager[FeedReader]:
        """Read until the block ends."""
        ...

    def take(self, reader: FeedReader, /) -> Json:
        """Return what a reader has not seen."""
        ...
