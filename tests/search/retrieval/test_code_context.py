"""What byok knows of code: nothing is opened until somebody needs it."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Coroutine, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from byok.core.code_query import BlobNames, RetrievalRequest, UnknownBlobs, Upload
from byok.core.errors import ByokError, NotReady
from byok.search.index.types import IndexOptions
from byok.search.retrieval.code_context import CodeContext
from tests.fakes.engines import project
from tests.fakes.patience import PATIENCE, until

# Cancels work at a chosen place where it waits.


class _Counted:
    """Awaits work; its task is cancelled when the work waits for the n-th time."""

    def __init__(self, work: Coroutine[Any, Any, object], number: int) -> None:
        self._work = work
        self._left = number

    def __await__(self) -> Generator[Any, Any, None]:
        task = asyncio.current_task()
        assert task is not None
        error: BaseException | None = None
        while True:
            try:
                waited = self._work.throw(error) if error else self._work.send(None)
            except StopIteration:
                return
            if not self._left:
                task.cancel()
            self._left -= 1
            try:
                yield waited
            except BaseException as caught:
                error = caught
            else:
                error = None


async def cancel_at(number: int, work: Coroutine[Any, Any, object]) -> bool:
    """Run work, and cancel it when it waits for the n-th time, counted from 0.

    Returns whether it was cancelled; else it ended before, and its error is raised.
    """

    async def run() -> None:
        await _Counted(work, number)

    task = asyncio.ensure_future(run())
    await asyncio.wait([task])
    if task.cancelled():
        return True
    task.result()
    return False


class Context(CodeContext):
    """A context in a folder of the test."""

    async def keep(self, path: str, text: str) -> bytes:
        [name] = await self.upload([Upload(b"", path, text.encode())])
        return name

    async def until_indexed(self) -> None:
        async def is_indexed() -> bool:
            return (await self.status()).state == "indexed"

        await until(is_indexed)


def context_in(folder: Path, *roots: Path) -> Context:
    options = IndexOptions(roots=roots, workers=1)
    return Context(folder / "data.db", folder / "index", options)


@pytest.fixture
async def context(tmp_path: Path) -> AsyncIterator[Context]:
    made = context_in(tmp_path / "data")
    await made.start()
    yield made
    await made.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(tmp_path / "zoo", lion__py="def feed_lion(): pass\n")


def damage(context: Context) -> None:
    """Overwrite all but the first page, which says that nothing changed."""
    with closing(sqlite3.connect(context.database)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with context.database.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (context.database.stat().st_size - 4096))


@pytest.mark.case("F36")
async def test_damage_in_use_is_one_refusal_and_then_all_is_built_anew(
    context: Context,
) -> None:
    names = [await context.keep(f"{n}.py", f"lion {n} " * 999) for n in range(40)]
    await context.until_indexed()
    damage(context)
    refusals = []
    for _ in range(6):
        try:
            missing = await context.find_missing(names)
        except NotReady as error:
            refusals.append(error.code)
        else:
            if missing.unknown == names:
                break
    else:
        pytest.fail(f"no recovery: {refusals}")
    assert set(refusals) <= {"corrupt_data"} and len(refusals) < 3
    assert await context.keep("0.py", "lion 0 " * 999) == names[0]
    assert len(list(context.database.parent.glob("data.db.damaged-?"))) == 1


@pytest.mark.case("F36")
@pytest.mark.parametrize("left", ["data.db", "data.db-wal"])
async def test_a_damaged_index_is_no_reason_not_to_start(
    tmp_path: Path, left: str
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / left).write_text("no database" * 99)
    for number in range(1, 10):  # so it cannot be set aside
        (tmp_path / "data" / f"data.db.damaged-{number}").write_text("older")
    context = context_in(tmp_path / "data")
    await context.start()
    with pytest.raises(ByokError) as caught:
        await context.find_missing([b"a" * 32])
    assert caught.value.code == "corrupt_data"
    assert await context.find_unknown(BlobNames()) == UnknownBlobs()
    await context.close()


async def test_code_context_of_a_user_who_only_chats_makes_no_files(
    context: Context,
) -> None:
    assert await context.find_unknown(BlobNames()) == UnknownBlobs()
    status = await context.status()
    assert (status.state, status.workspaces) == ("standby", ())
    assert not context.database.parent.exists()


async def test_a_second_context_of_the_same_files_does_not_open(
    tmp_path: Path, root: Path
) -> None:
    one, two = context_in(tmp_path / "data", root), context_in(tmp_path / "data", root)
    await one.start()
    await two.start()  # chats are served all the same
    assert await two.find_unknown(BlobNames("lost", (bytes(32),))) == UnknownBlobs()
    assert await two.text_of("0" * 64) is None
    with pytest.raises(ByokError, match="Another byok process"):
        await two.retrieve(RetrievalRequest("lion"))
    await one.close()
    await two.until_indexed()
    await two.close()


async def test_code_context_opens_at_the_start_where_there_is_something(
    tmp_path: Path,
) -> None:
    one = context_in(tmp_path / "data")
    await one.keep("a.py", "lion")
    await one.close()
    two = context_in(tmp_path / "data")
    await two.start()
    await two.until_indexed()
    await two.close()


@pytest.mark.case("F36")
async def test_a_client_that_leaves_while_a_damaged_index_is_closed_locks_nothing(
    tmp_path: Path, root: Path
) -> None:
    """Wherever it leaves, the files are closed, and whoever comes next opens them."""
    was_cancelled, number = True, 0
    while was_cancelled:
        context = context_in(tmp_path / f"data-{number}", root)
        await context.start()
        await context.until_indexed()  # else the indexer may meet the damage first
        damage(context)
        with pytest.raises(NotReady):
            await context.find_missing([b"\x01" * 32])
        was_cancelled = await cancel_at(number, context.open())
        await context.open()
        await context.close()
        number += 1


class HeldUploads(list[Upload]):
    """Uploads that the thread which writes them cannot read at once."""

    def __init__(self, *uploads: Upload) -> None:
        super().__init__(uploads)
        self.are_read, self.may_go_on = threading.Event(), threading.Event()

    def __iter__(self) -> Iterator[Upload]:
        if threading.current_thread() is not threading.main_thread():
            self.are_read.set()
            assert self.may_go_on.wait(PATIENCE)
        return super().__iter__()


async def test_an_upload_whose_client_leaves_while_it_is_written_is_indexed(
    context: Context,
) -> None:
    """The client is not asked for it again, as it is kept."""
    uploads = HeldUploads(Upload(b"", "lion.py", b"def feed_lion(): pass\n"))
    leaving = asyncio.ensure_future(context.upload(uploads))
    await asyncio.to_thread(uploads.are_read.wait, PATIENCE)
    leaving.cancel()
    await asyncio.wait([leaving])
    uploads.may_go_on.set()
    await context.until_indexed()
