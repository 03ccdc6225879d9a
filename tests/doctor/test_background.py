"""Work in threads that nobody has to wait for."""

import asyncio
import threading

import pytest

from byok.doctor.background import in_background


async def test_the_result_comes_from_another_thread() -> None:
    thread = await in_background(threading.current_thread)
    assert thread is not threading.current_thread()
    assert thread.daemon  # the program need not wait for it


async def test_an_error_is_raised_where_it_is_waited_for() -> None:
    with pytest.raises(ZeroDivisionError):
        await in_background(lambda: 1 // 0)


async def test_who_stops_waiting_leaves_the_work_alone() -> None:
    go_on, ended = threading.Event(), threading.Event()

    def work() -> None:
        go_on.wait(20)
        ended.set()

    task = asyncio.ensure_future(in_background(work))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    assert await asyncio.to_thread(ended.wait, 20)
