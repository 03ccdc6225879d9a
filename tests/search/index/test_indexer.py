"""The indexing thread: order, batches, failures, and how it ends."""

import threading
from collections.abc import Iterable, Iterator, Sequence

import pytest

from byok.search.index.indexer import Indexer
from byok.search.index.types import (
    IndexTask,
    ParseJob,
    ParseOutcome,
    Prepared,
    WorkspaceTask,
)
from tests.fakes.patience import PATIENCE, until


class Shelf:
    """A writer that remembers; `failures` are raised first."""

    def __init__(self) -> None:
        self.batches: list[list[IndexTask]] = []
        self.flushed = 0
        self.failures = 0
        self.failure: Exception = OSError("no space left on device")

    def put(self, outcomes: Sequence[tuple[IndexTask, ParseOutcome]]) -> None:
        if self.failures:
            self.failures -= 1
            raise self.failure
        self.batches.append([task for task, _ in outcomes])

    def flush(self) -> None:
        self.flushed += 1

    def parser_crashers(self) -> frozenset[bytes]:
        return frozenset()

    @property
    def paths(self) -> list[str]:
        return [task.path for batch in self.batches for task in batch]


class Hands:
    """Workers that answer at once, `sizes` of those made; `gate` holds them up."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.closed = 0
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, size: int) -> "Hands":
        self.sizes.append(size)
        return self

    def prepare(self, jobs: Iterable[ParseJob]) -> Iterator[ParseOutcome]:
        for job in jobs:
            self.gate.wait(PATIENCE)
            yield ParseOutcome(job.key, Prepared(b"n", 1))

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def indexer(shelf: Shelf, hands: Hands) -> Iterator[Indexer]:
    made = Indexer(hands, shelf, lambda blob_id: None, first_pause=0.01)
    yield made
    hands.gate.set()
    made.close()


async def done(indexer: Indexer) -> None:
    await until(lambda: not indexer.open_tasks)


def tasks(*paths: str, of: int = 1) -> list[IndexTask]:
    return [WorkspaceTask(of, path, root="/w") for path in paths]


async def test_indexer_makes_slow_files_searchable_before_a_batch_is_full(
    shelf: Shelf, hands: Hands
) -> None:
    hands.gate.clear()
    made = Indexer(hands, shelf, lambda blob_id: None, flush_seconds=0)
    made.put(tasks("a", "b", "c"))
    hands.gate.set()
    await done(made)
    made.close()
    assert [len(batch) for batch in shelf.batches] == [1, 1, 1]
    assert shelf.flushed >= 3


async def test_indexer_task_is_open_until_it_is_searchable(
    indexer: Indexer, hands: Hands
) -> None:
    hands.gate.clear()
    indexer.put(tasks("a", "b", of=1))
    indexer.put(tasks("c", of=2))
    assert indexer.open_tasks == 3
    assert (indexer.open_of(1), indexer.open_of(2), indexer.open_of(3)) == (2, 1, 0)
    hands.gate.set()
    await done(indexer)
    assert indexer.open_of(1) == 0


async def test_indexer_does_urgent_tasks_first_in_their_order(
    indexer: Indexer, hands: Hands, shelf: Shelf
) -> None:
    hands.gate.clear()
    indexer.put(tasks("at work"))
    await until(lambda: hands.sizes == [1])
    indexer.put(tasks("c", "d"))
    indexer.put(tasks("a", "b"), first=True)
    hands.gate.set()
    await done(indexer)
    assert len(shelf.paths) == 5
    rest = [path for path in shelf.paths if path != "at work"]
    assert rest == ["a", "b", "c", "d"]


async def test_indexer_returns_dropped_tasks_undone(
    indexer: Indexer, hands: Hands, shelf: Shelf
) -> None:
    hands.gate.clear()
    indexer.put(tasks("at work", of=2))
    await until(lambda: hands.sizes == [1])
    indexer.put(tasks("a", "b", "src/d", of=1))
    indexer.put(tasks("c", of=2))
    assert [task.path for task in indexer.drop(1, {"src"})] == ["src/d"]
    assert [task.path for task in indexer.drop(1)] == ["a", "b"]
    assert indexer.open_of(1) == 0
    hands.gate.set()
    await done(indexer)
    assert shelf.paths == ["at work", "c"]


async def test_indexer_reports_a_failure_and_tries_everything_again(
    shelf: Shelf, hands: Hands, caplog: pytest.LogCaptureFixture
) -> None:
    shelf.failures = 3
    hands.gate.clear()
    indexer = Indexer(hands, shelf, lambda blob_id: None, first_pause=0.01)
    try:
        indexer.put(tasks("a", "b"))
        hands.gate.set()
        await until(lambda: bool(indexer.error) or not indexer.open_tasks)
        assert indexer.open_tasks in (0, 2)
        await done(indexer)
        await until(lambda: not indexer.error)
    finally:
        indexer.close()
    assert sorted(shelf.paths) == ["a", "b"]
    assert hands.closed >= 3  # new workers after each failure
    assert caplog.text.count("The disk is full") == 3
    assert "Traceback" not in caplog.text  # nobody has to look for the reason


async def test_indexer_gives_a_few_tasks_one_worker_and_many_tasks_all(
    shelf: Shelf, hands: Hands
) -> None:
    indexer = Indexer(hands, shelf, lambda blob_id: None, size=3)
    try:
        indexer.put(tasks("a"))
        await done(indexer)
        indexer.put(tasks(*(f"{n}" for n in range(200))))
        await done(indexer)
        indexer.put(tasks("b"))
        await done(indexer)
    finally:
        indexer.close()
    assert hands.sizes == [1, 3]


async def test_indexer_ends_idle_workers_and_starts_them_again(
    shelf: Shelf, hands: Hands
) -> None:
    indexer = Indexer(hands, shelf, lambda blob_id: None, idle=0.01)
    try:
        indexer.put(tasks("a"))
        await until(lambda: hands.closed == 1)
        indexer.put(tasks("b"))
        await done(indexer)
    finally:
        indexer.close()
    assert shelf.paths == ["a", "b"]


async def test_indexer_close_ends_after_the_batch_at_hand(
    shelf: Shelf, hands: Hands
) -> None:
    indexer = Indexer(hands, shelf, lambda blob_id: None)
    hands.gate.clear()
    indexer.put(tasks(*(f"{n}" for n in range(1000))))
    await until(lambda: hands.sizes != [])
    closing = threading.Thread(target=indexer.close)
    closing.start()
    hands.gate.set()
    closing.join(PATIENCE)
    assert not closing.is_alive()
    assert len(shelf.paths) < 1000
    assert not any(thread.name == "indexer" for thread in threading.enumerate())
