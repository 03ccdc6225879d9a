"""Finding the running daemon, and being sure that it is it."""

import asyncio
import threading
import time

from byok.daemon.instance import only_instance
from byok.daemon_client.find import find_daemon
from byok.platform.paths import find_paths
from tests.fakes.patience import PATIENCE
from tests.fakes.rows import daemon_rows


async def find(seconds: float = 0) -> int:
    """Return the port of the daemon, 0 without one."""
    found = await asyncio.to_thread(find_daemon, find_paths(), seconds)
    return found.port if found else 0


async def test_find_daemon_that_proves_itself() -> None:
    async with daemon_rows() as rows:
        assert await find() == rows.port


async def test_find_daemon_gives_nothing_at_once_without_one() -> None:
    began = time.monotonic()
    assert await find(30) == 0
    assert time.monotonic() - began < 10


async def test_find_daemon_sends_no_token_without_a_proof() -> None:
    async with daemon_rows() as rows:
        rows.honest = False
        assert await find() == 0
        assert rows.tokens == []


async def test_find_daemon_waits_for_one_that_is_starting() -> None:
    ready, found = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def start() -> None:
        with only_instance(find_paths()):
            ready.set()
            time.sleep(0.1)
        asyncio.run_coroutine_threadsafe(serve(), loop)

    async def serve() -> None:
        async with daemon_rows():
            await found.wait()

    thread = threading.Thread(target=start)
    thread.start()
    await asyncio.to_thread(ready.wait)
    deadline = time.monotonic() + PATIENCE
    while not (port := await find(5)) and time.monotonic() < deadline:
        pass  # the lock changed hands between two looks
    found.set()
    thread.join()
    assert port
