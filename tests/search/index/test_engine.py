"""The engine: workspaces come and go, indexes are built anew, files are shown."""

import asyncio
import shutil
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from byok.core.code_query import Upload
from byok.core.errors import ConfigError, IndexInUse, NotReady
from byok.search.index.engine import ContextEngine, open_engine
from byok.search.index.parse.prepare import prepare
from byok.search.index.report import totals
from byok.search.index.store.batches import INDEX_VERSION
from byok.search.index.store.chunk_index import View
from byok.search.index.store.store import Store
from byok.search.index.types import (
    IndexOptions,
    ParseJob,
    ParseOutcome,
    Phase,
    State,
    blob_name,
)
from byok.search.index.workspace.workspace import total_view
from tests.fakes.engines import (
    InlineWorkers,
    complete,
    engine,
    indexed,
    project,
    written,
)
from tests.fakes.patience import until
from tests.fakes.stores import write_old_index


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(
        tmp_path / "p", a__py="def lion(): pass\n", src___b__py="tiger = 1\n"
    )


def found(made: ContextEngine, path: str) -> str | None:
    """Return a file's text as the index has it."""
    for space in made.workspaces:
        blob_id = space.blob_of(path)
        if blob_id is not None:
            lines = made.contents.lines_of(made.contents.entries([blob_id])[blob_id])
            return None if lines is None else "\n".join(lines)
    return None


async def test_engine_restart_reads_no_unchanged_file(
    tmp_path: Path, root: Path
) -> None:
    async with indexed(tmp_path / "e", root) as made:
        await until(lambda: not made.indexer.open_tasks)
    workers = InlineWorkers()
    async with indexed(tmp_path / "e", root, workers=workers) as made:
        [space] = made.workspaces
        assert space.counters.mtime_hits == 2
        assert (found(made, "a.py") or "").startswith("def lion")
    assert workers.prepared == []


async def test_engine_remembers_a_workspace_added_by_hand_until_it_is_removed(
    tmp_path: Path, root: Path
) -> None:
    async with engine(tmp_path / "e") as made:
        space = await made.add(root)
        assert await made.add(root) is space
        await complete(made)
    async with engine(tmp_path / "e") as made:
        assert [space.root for space in made.workspaces] == [root]
        assert await made.remove(root)
        assert not await made.remove(root)
        assert made.workspaces == []
        assert totals(made.store)["blobs"] == 0
        assert made.state is State.STANDBY
    async with engine(tmp_path / "e") as made:
        assert made.workspaces == []


async def test_engine_gives_up_an_own_folder_that_was_once_added(
    tmp_path: Path, root: Path
) -> None:
    async with engine(tmp_path / "e") as made:
        await made.add(root)
        await complete(made)
    async with engine(tmp_path / "e", own_folders=[root]) as made:
        assert made.workspaces == []
        assert totals(made.store)["blobs"] == 0
        with pytest.raises(ConfigError):
            await made.add(root)


async def test_engine_removes_a_workspace_while_it_is_indexed(
    tmp_path: Path, root: Path
) -> None:
    other = project(tmp_path / "q", c__py="lynx")
    workers = InlineWorkers()
    workers.gate.clear()
    async with engine(tmp_path / "e", root, workers=workers) as made:
        await until(lambda: made.indexer.open_tasks == 2)
        assert await made.remove(root)
        await made.add(other)
        workers.gate.set()
        await complete(made)
        assert made.indexer.error == ""
        assert found(made, "c.py") == "lynx"
        assert totals(made.store)["blobs"] == 1


async def test_engine_follows_two_workspaces_of_one_name_and_a_nested_one(
    tmp_path: Path, root: Path
) -> None:
    twin = project(tmp_path / "other" / "p", a__py="def lion(): pass\n")
    async with indexed(tmp_path / "e", root, twin, root / "src") as made:
        assert len({space.label for space in made.workspaces}) == 3
        assert [sorted(space.paths()) for space in made.workspaces] == [
            ["a.py", "src/b.py"],
            ["a.py"],
            ["b.py"],
        ]
        (root / "a.py").unlink()
        await until(lambda: made.workspaces[0].blob_of("a.py") is None)
        assert (found(made, "a.py") or "").startswith("def lion")  # the twin has it
        await made.remove(twin)
        assert found(made, "a.py") is None


async def test_engine_rebuild_answers_from_the_old_index(
    tmp_path: Path, root: Path
) -> None:
    workers = InlineWorkers()
    async with indexed(tmp_path / "e", root, workers=workers) as made:
        [space] = made.workspaces
        stale = replace(prepare("a.py", (root / "a.py").read_bytes()), path_terms="zzz")
        blob_id = space.blob_of("a.py") or 0
        made.store.index.remove(blob_id)
        made.store.index.add(blob_id, stale)
        made.store.index.commit()
        view = total_view([space], made.store.index.chunks)
        workers.gate.clear()
        assert await made.rebuild() == 2
        assert (space.status.phase, made.state) == (Phase.COMPLETE, State.INDEXING)
        assert [hit.blob_id for hit in made.store.index.search({"zzz": 1}, view)]
        (root / "a.py").write_text("def panther(): pass\n")
        workers.gate.set()
        await until(lambda: (found(made, "a.py") or "").startswith("def panther"))
        await complete(made)
        everything = View("all", frozenset(range(99)), made.store.index.chunks)
        assert made.store.index.search({"zzz": 1}, everything) == []
        assert made.store.index.search({"panther": 1}, everything)
        assert made.store.index.search({"tiger": 1}, everything)


async def test_engine_rebuild_without_room_for_two_keeps_the_old_index(
    tmp_path: Path, root: Path
) -> None:
    workers = InlineWorkers()
    async with indexed(tmp_path / "e", root, workers=workers) as made:
        made.store.spare = 2**60
        workers.prepared.clear()
        with pytest.raises(NotReady) as raised:
            await made.rebuild()
        assert (raised.value.status, raised.value.code) == (507, "storage_full")
        assert (workers.prepared, made.state) == ([], State.INDEXED)


async def test_engine_rebuild_mends_an_index_whose_folder_vanished(
    tmp_path: Path, root: Path
) -> None:
    async with indexed(tmp_path / "e", root) as made:
        shutil.rmtree(tmp_path / "e" / "index")
        await made.rebuild()
        await complete(made)
        assert (found(made, "a.py") or "").startswith("def lion")
        assert made.store.index.chunks
    async with indexed(tmp_path / "e", root) as made:
        assert made.store.index.chunks


async def test_engine_follows_other_workspaces_if_one_cannot_be_opened(
    tmp_path: Path, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with engine(tmp_path / "e", tmp_path / "none", root) as made:
        assert [space.root for space in made.workspaces] == [root]
    assert "cannot be opened" in caplog.text


async def test_engine_follows_a_folder_of_the_settings_that_comes_later(
    tmp_path: Path,
) -> None:
    late = tmp_path / "late"
    async with engine(tmp_path / "e", late, poll_seconds=0.02) as made:
        assert made.workspaces == []
        written(late, {"a.py": "def lynx(): pass\n"})
        await until(lambda: bool(made.workspaces))
        await until(lambda: "lynx" in (found(made, "a.py") or ""))


async def test_engine_close_is_quick_and_leaves_no_thread(
    tmp_path: Path, root: Path
) -> None:
    written(root, {f"more/{n}.py": f"x{n}" for n in range(400)})
    before = set(threading.enumerate())
    async with engine(tmp_path / "e", root) as made:
        await until(lambda: made.indexer.open_tasks > 0)
    left = {thread.name for thread in set(threading.enumerate()) - before}
    assert not left & {"indexer", "context-writer_0"}


async def test_engine_forgets_what_nobody_used_for_a_month(
    tmp_path: Path, root: Path
) -> None:
    async with indexed(tmp_path / "e", root) as made:
        await asyncio.wrap_future(
            made.store.change(lambda db: db.execute("UPDATE workspace SET used = 1"))
        )
    async with engine(tmp_path / "e") as made:
        await asyncio.wrap_future(made.store.writing(lambda: None))
        assert totals(made.store)["blobs"] == 0


@pytest.mark.parametrize("steps", [0, 1, 3])
async def test_engine_finishes_the_work_of_a_caller_that_was_cancelled(
    tmp_path: Path, root: Path, steps: int
) -> None:
    async with indexed(tmp_path / "e", root) as made:
        for change in (made.rebuild(), made.remove(root)):
            task = asyncio.ensure_future(change)
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert not await made.remove(root) or steps == 0
        assert made.workspaces == []
        space = await made.add(root)
        await complete(made)
        assert sorted(space.paths()) == ["a.py", "src/b.py"]


async def test_an_engine_that_was_closed_changes_nothing_more(
    tmp_path: Path, root: Path
) -> None:
    async with indexed(tmp_path / "e", root) as made:
        pass
    for change in (made.add(root / "src"), made.remove(root), made.rebuild()):
        with pytest.raises(NotReady):
            await change


class Dying(InlineWorkers):
    """Workers whose parser dies of every file once, as the pool tells it."""

    def __init__(self) -> None:
        super().__init__()
        self.spared: set[tuple[str, bytes]] = set()

    def prepare(self, jobs: Iterable[ParseJob]) -> Iterator[ParseOutcome]:
        for job in jobs:
            [told] = super().prepare([job])
            made = told.prepared
            if made is not None and made.name in job.parser_crashers:
                self.spared.add((job.path, made.name))
            yield replace(told, plain=True)


@pytest.mark.case("B77")
async def test_engine_tries_what_crashed_a_parser_again_at_the_next_start(
    tmp_path: Path, root: Path
) -> None:
    """A file never loses its definitions for good."""
    async with indexed(tmp_path / "e", root, workers=Dying()):
        pass
    workers = Dying()
    async with indexed(tmp_path / "e", root, workers=workers):
        assert sorted(workers.prepared) == ["a.py", "src/b.py"]
        assert not workers.spared
    for tried in (["a.py", "src/b.py"], []):
        well = InlineWorkers()
        async with indexed(tmp_path / "e", root, workers=well):
            assert sorted(well.prepared) == tried


@pytest.mark.case("B77")
async def test_engine_rebuild_does_not_parse_again_what_crashed_a_parser(
    tmp_path: Path, root: Path
) -> None:
    workers = Dying()
    async with indexed(tmp_path / "e", root, workers=workers) as made:
        assert not workers.spared
        await made.rebuild()
        await complete(made)
        assert sorted(path for path, _ in workers.spared) == ["a.py", "src/b.py"]
        (root / "a.py").write_text("def mended(): pass\n")
        await until(lambda: (found(made, "a.py") or "").startswith("def mended"))
        assert sorted(path for path, _ in workers.spared) == ["a.py", "src/b.py"]


@pytest.fixture
def lion_root(tmp_path: Path) -> Path:
    return project(tmp_path / "project", a__py="def lion(): pass\n")


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


# After an update of byok: the old index answers until everything is indexed again


def age(folder: Path) -> None:
    """Make it look as if an older byok had indexed everything."""
    with closing(sqlite3.connect(folder / "data.db")) as db, db:
        db.execute("UPDATE blob SET index_version = 0")


def finds(made: ContextEngine, word: str) -> int:
    view = View(word, frozenset(range(99)), 0)
    return len(made.store.index.search({word: 1}, view))


async def test_outdated_index_without_marks_answers_until_it_has_them(
    tmp_path: Path, lion_root: Path
) -> None:
    """Its documents lack a field; nothing is thrown away, no upload is lost."""
    async with engine(tmp_path / "e", lion_root) as made:
        [name] = await made.uploads.upload([Upload(b"", "up.py", b"class Tiger: 1\n")])
        await complete(made)
        with made.store.reading() as db:
            ids = dict(db.execute("SELECT path, id FROM blob"))
    shutil.rmtree(tmp_path / "e" / "index")
    texts = {ids["a.py"]: ["def lion pass"], ids["up.py"]: ["class tiger"]}
    write_old_index(tmp_path / "e" / "index", texts)
    age(tmp_path / "e")
    workers = InlineWorkers()
    workers.gate.clear()
    everything = View("", frozenset(range(99)), 0)
    async with engine(tmp_path / "e", lion_root, workers=workers) as made:
        assert (finds(made, "lion"), finds(made, "tiger")) == (1, 1)
        assert await made.uploads.find_missing([name]) == ([], [])
        assert made.store.index.find_marked({":t:Tiger": 1}, everything) == []
        workers.gate.set()
        await complete(made)
        assert (finds(made, "lion"), finds(made, "tiger")) == (1, 1)
        [hit] = made.store.index.find_marked({":t:Tiger": 1}, everything)
        assert hit.blob_id == ids["up.py"]
    assert not (tmp_path / "e" / "index.corrupt").exists()


async def test_outdated_index_is_continued_by_the_next_start(
    tmp_path: Path, lion_root: Path
) -> None:
    async with engine(tmp_path / "e", lion_root) as made:
        await made.uploads.upload([Upload(b"", "up.py", b"tiger = 1\n")])
        await complete(made)
    age(tmp_path / "e")
    with closing(sqlite3.connect(tmp_path / "e" / "data.db")) as db, db:
        db.execute(
            f"UPDATE blob SET index_version = {INDEX_VERSION} WHERE path = 'up.py'"
        )
    for expected in (["a.py"], [], []):
        workers = InlineWorkers()
        async with indexed(tmp_path / "e", lion_root, workers=workers) as made:
            assert workers.prepared == expected


async def test_outdated_index_stays_without_room_for_a_new_one(
    tmp_path: Path, lion_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with indexed(tmp_path / "e", lion_root):
        pass
    age(tmp_path / "e")
    defaults = Store.__init__.__kwdefaults__ or {}
    monkeypatch.setitem(defaults, "spare", 2**60)
    workers = InlineWorkers()
    async with indexed(tmp_path / "e", lion_root, workers=workers) as made:
        assert workers.prepared == []
        assert finds(made, "lion") == 1


# What blobs hold


async def test_contents_come_from_the_file_while_it_is_that_version(
    tmp_path: Path,
) -> None:
    root = tmp_path / "project"
    written(root, {"a.py": "one\ntwo\n"})
    async with indexed(tmp_path / "e", root) as made:
        [space] = made.workspaces
        [entry] = made.contents.entries(space.ids()).values()
        assert (entry.path, len(entry.spans)) == ("a.py", 1)
        assert made.contents.lines_of(entry) == ["one", "two"]
        (root / "a.py").write_text("three\n")
        assert made.contents.lines_of(entry) is None


async def test_contents_are_read_by_name_but_of_a_secret_file_never_shown(
    tmp_path: Path,
) -> None:
    name = blob_name(".env", b"KEY=1\r\n")
    async with engine(tmp_path / "e", allow_secret=[".env"]) as made:
        assert made.contents.text_of(name) is None
        await made.uploads.upload([Upload(name, ".env", b"KEY=1\r\n")])
        assert made.contents.text_of(name) == "KEY=1\n"
    async with engine(tmp_path / "e") as made:
        [known] = made.contents.find_entries([name]).values()
        [entry] = made.contents.entries([known.id]).values()
        assert made.contents.is_private(entry)
        assert made.contents.content_of(entry) is None
        assert made.contents.text_of(name) is None
