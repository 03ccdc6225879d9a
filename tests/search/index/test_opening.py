"""Opening the engine, with its real workers."""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from byok.core.errors import IndexInUse
from byok.search.index.engine import ContextEngine, open_engine
from byok.search.index.store.chunk_index import View
from byok.search.index.types import IndexOptions
from tests.fakes.engines import complete, project, until
from tests.fakes.memory_index import MemoryIndex


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(tmp_path / "project", a__py="def lion(): pass\n")


async def test_the_real_workers_do_the_same(tmp_path: Path, root: Path) -> None:
    options = IndexOptions(roots=[root])
    async with open_engine(tmp_path / "data.db", tmp_path / "index", options) as made:
        await complete(made)
        [entry] = made.contents.entries(made.workspaces[0].ids()).values()
        assert made.contents.lines_of(entry) == ["def lion(): pass"]


async def test_another_lexical_index_takes_the_place_of_tantivy(
    tmp_path: Path, root: Path
) -> None:
    options = IndexOptions(roots=[root])
    for _ in range(2):  # this index is empty at each start, and filled again
        async with open_engine(
            tmp_path / "data.db", tmp_path / "index", options, open_index=MemoryIndex
        ) as made:
            await complete(made)
            view = made.workspaces[0].members()
            [hit] = made.store.index.search({"lion": 1.0}, View(*view, chunks=0))
            assert hit.blob_id == made.workspaces[0].blob_of("a.py")
    assert not (tmp_path / "index").exists()


async def test_who_hangs_up_while_the_files_are_opened_leaves_them_free(
    tmp_path: Path,
) -> None:
    def opened() -> AbstractAsyncContextManager[ContextEngine]:
        return open_engine(tmp_path / "data.db", tmp_path / "index", IndexOptions())

    task = asyncio.ensure_future(opened().__aenter__())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    async def free() -> bool:
        try:
            async with opened():
                return True
        except IndexInUse:
            return False

    await until(free)
