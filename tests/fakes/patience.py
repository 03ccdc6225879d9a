"""How long a test waits for what has to happen, and waiting for it."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable

# Seconds: many times what anything takes where thirty busy processes share the
# processors with the tests, and less than the minute and more that tests name where
# byok must not wait for something.
PATIENCE = 50.0

# Seconds for programs to start and to say so.
START = 150.0


async def until(
    holds: Callable[[], bool | Awaitable[bool]], seconds: float = PATIENCE
) -> None:
    """Wait until something holds; fails after some seconds."""
    async with asyncio.timeout(seconds):
        while True:
            found = holds()
            if await found if inspect.isawaitable(found) else found:
                return
            await asyncio.sleep(0.01)
