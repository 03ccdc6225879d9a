"""A function that runs here gives what it returns, or raises."""

import threading

import pytest

from byok.threads import Run, here


async def test_it_runs_in_this_thread_and_gives_its_result() -> None:
    run: Run = here
    assert await run(threading.current_thread) is threading.current_thread()


async def test_what_it_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        await here(lambda: 1 // 0)
