"""Blocking work in threads that nobody waits for at the end.

A lookup of a name, a keyring or a network drive may block for minutes. The threads of
asyncio are waited for when the program ends; these are not.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def in_background(work: Callable[[], T], /) -> T:
    """Return what `work` returned; whoever stops waiting leaves it to itself."""
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[Future[T]] = loop.create_future()
    done: Future[T] = Future()

    def tell() -> None:
        if not waiting.done():  # else nobody waits any more
            waiting.set_result(done)

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # raised again where it is waited for
            done.set_exception(error)
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(tell)

    threading.Thread(target=run, name="byok-doctor", daemon=True).start()
    return (await waiting).result()
