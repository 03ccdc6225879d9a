"""A worker does all it took in its order, and keeps nobody waiting, nor from ending."""

import asyncio
import threading
from functools import partial

import pytest

from byok.storage.worker import Worker
from tests.fakes.patience import PATIENCE


def test_work_is_done_in_its_order_and_the_last_comes_last() -> None:
    done: list[int] = []
    worker = Worker("test")
    for number in range(100):
        assert worker.offer(partial(done.append, number))
    worker.close(partial(done.append, 100), PATIENCE)
    assert done == [*range(101)]
    assert not worker.offer(partial(done.append, 101))
    with pytest.raises(RuntimeError):
        worker.run(partial(done.append, 101))


def test_what_hangs_fills_the_queue_and_does_not_keep_byok_from_ending() -> None:
    worker, hangs = Worker("test"), threading.Event()
    taken = [worker.offer(hangs.wait) for _ in range(1000)]
    assert 0 < taken.count(True) < 999
    assert not taken[-1]
    worker.close(seconds=0.01)
    left = [thread for thread in threading.enumerate() if thread.name == "test"]
    assert [thread.daemon for thread in left] == [True]
    hangs.set()


async def test_a_failure_is_told_to_whom_it_concerns_and_stops_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker = Worker("test")
    assert worker.offer(partial(int, "x"))
    with pytest.raises(ValueError, match="invalid"):
        await asyncio.wrap_future(worker.run(partial(int, "y")))
    assert await asyncio.wrap_future(worker.run(partial(int, "3"))) == 3
    worker.close()
    assert caplog.text.count("Traceback") == 1


async def test_nobody_need_wait_for_an_answer() -> None:
    worker, hangs = Worker("test"), threading.Event()
    worker.offer(hangs.wait)
    left = worker.run(partial(int, "1"))
    assert left.cancel()
    hangs.set()
    assert await asyncio.wrap_future(worker.run(partial(int, "2"))) == 2
    worker.close()


def test_a_chore_is_done_while_there_is_nothing_else() -> None:
    is_done = threading.Event()
    worker = Worker("test", chore=is_done.set, every=0.001)
    assert not is_done.is_set()
    worker.offer(lambda: None)
    assert is_done.wait(PATIENCE)
    worker.close()
