"""A function that runs here gives what it returns, or raises."""

import threading

import pytest

from byok.core.threads import Runner, inline


async def test_it_runs_in_this_thread_and_gives_its_result() -> None:
    run: Runner = inline
    assert await run(threading.current_thread) is threading.current_thread()


async def test_threads_raise_the_error_of_their_work() -> None:
    with pytest.raises(ZeroDivisionError):
        await inline(lambda: 1 // 0)
