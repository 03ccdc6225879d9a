"""The engine: workspaces come and go, indexes are built anew, files are shown."""

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from byok.core.code_query import Upload
from byok.core.errors import ConfigError, NotReady
from byok.search.index.engine import ContextEngine
from byok.search.index.files.reading import facts_of
from byok.search.index.parse.prepare import prepare
from byok.search.index.report import totals
from byok.search.index.store.chunk_index import View
from byok.search.index.types import (
    ParseJob,
    ParseOutcome,
    Phase,
    SkipReason,
    State,
    WorkspaceTask,
    blob_name,
)
from byok.search.index.workspace.workspace import total_view
from tests.fakes.engines import (
    InlineWorkers,
    complete,
    engine,
    project,
    until,
    written,
)
from tests.fakes.stores import Opened, of_upload


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


async def test_engine_indexes_a_workspace_that_can_be_read(
    tmp_path: Path, root: Path
) -> None:
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        assert made.state is State.INDEXED
        progress = made.workspaces[0].progress
        assert (progress.root, progress.percentage) == (str(root), 100.0)
        assert (found(made, "src/b.py") or "").strip() == "tiger = 1"
        assert totals(made.store)["blobs"] == 2


async def test_engine_without_work_is_standby(tmp_path: Path) -> None:
    async with engine(tmp_path) as made:
        assert made.state is State.STANDBY
        assert made.workspaces == []


async def test_engine_restart_reads_no_unchanged_file(
    tmp_path: Path, root: Path
) -> None:
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        await until(lambda: not made.indexer.open_tasks)
    workers = InlineWorkers()
    async with engine(tmp_path / "e", root, workers=workers) as made:
        await complete(made)
        [space] = made.workspaces
        assert space.counters.mtime_hits == 2
        assert (found(made, "a.py") or "").startswith("def lion")
    assert workers.prepared == []


async def test_engine_restart_continues_interrupted_work(
    tmp_path: Path, root: Path
) -> None:
    written(root, {f"more/{n}.py": f"x{n}" for n in range(300)})
    workers = InlineWorkers()
    async with engine(tmp_path / "e", root, workers=workers) as made:
        await until(lambda: len(workers.prepared) > 100)
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        assert len(made.workspaces[0].paths()) == 302


async def test_engine_remembers_a_workspace_added_by_hand(
    tmp_path: Path, root: Path
) -> None:
    async with engine(tmp_path / "e") as made:
        space = await made.add(root)
        assert await made.add(root) is space
        await complete(made)
    async with engine(tmp_path / "e") as made:
        assert [space.root for space in made.workspaces] == [root]


async def test_engine_does_not_remember_a_workspace_of_the_settings(
    tmp_path: Path, root: Path
) -> None:
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
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


async def test_engine_follows_a_workspace_once_if_added_twice(
    tmp_path: Path, root: Path
) -> None:
    async with engine(tmp_path / "e") as made:
        one, two = await asyncio.gather(made.add(root), made.add(root))
        assert one is two
        assert made.workspaces == [one]


async def test_engine_removes_a_workspace_completely(
    tmp_path: Path, root: Path
) -> None:
    async with engine(tmp_path / "e") as made:
        await made.add(root)
        await complete(made)
        assert await made.remove(root)
        assert not await made.remove(root)
        assert made.workspaces == []
        assert totals(made.store)["blobs"] == 0
        assert made.state is State.STANDBY
    async with engine(tmp_path / "e") as made:
        assert made.workspaces == []


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
    async with engine(tmp_path / "e", root, twin, root / "src") as made:
        await complete(made)
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


async def test_engine_rebuild_indexes_everything_again(
    tmp_path: Path, root: Path
) -> None:
    workers = InlineWorkers()
    async with engine(tmp_path / "e", root, workers=workers) as made:
        text = b"elephant"
        [name] = await made.uploads.upload([Upload(b"", "up.py", text)])
        await complete(made)
        chunks = made.store.index.chunks
        workers.prepared.clear()
        await made.rebuild()
        await complete(made)
        assert sorted(workers.prepared) == ["a.py", "src/b.py", "up.py"]
        assert made.store.index.chunks == chunks
        assert (found(made, "a.py") or "").startswith("def lion")
        assert await made.uploads.find_missing([name]) == ([], [])


async def test_engine_rebuild_answers_from_the_old_index(
    tmp_path: Path, root: Path
) -> None:
    workers = InlineWorkers()
    async with engine(tmp_path / "e", root, workers=workers) as made:
        await complete(made)
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
    async with engine(tmp_path / "e", root, workers=workers) as made:
        await complete(made)
        made.store.spare = 2**60
        workers.prepared.clear()
        with pytest.raises(NotReady) as raised:
            await made.rebuild()
        assert (raised.value.status, raised.value.code) == (507, "storage_full")
        assert (workers.prepared, made.state) == ([], State.INDEXED)


async def test_engine_rebuild_that_breaks_off_leaves_a_whole_index(
    tmp_path: Path, root: Path
) -> None:
    written(root, {f"more/{n}.py": f"x{n} = 1\n" for n in range(200)})
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
    opened = Opened(tmp_path / "e")
    ids = dict(opened.batches.check())
    for blob_id, path in list(ids.items())[:50]:
        again = prepare(path, (root / path).read_bytes())
        opened.batches.put([of_upload(blob_id, path, again)])
    opened.abandon()
    async with engine(tmp_path / "e", root) as made:
        assert made.store.index.chunks >= 152  # those that nobody had begun
        await complete(made)
        assert len(made.workspaces[0].paths()) == made.store.index.chunks == 202


async def test_engine_rebuild_mends_an_index_whose_folder_vanished(
    tmp_path: Path, root: Path
) -> None:
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        shutil.rmtree(tmp_path / "e" / "index")
        await made.rebuild()
        await complete(made)
        assert (found(made, "a.py") or "").startswith("def lion")
        assert made.store.index.chunks
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        assert made.store.index.chunks


async def test_engine_rebuild_in_the_middle_of_indexing_ends_complete(
    tmp_path: Path, root: Path
) -> None:
    written(root, {f"more/{n}.py": f"x{n}" for n in range(100)})
    workers = InlineWorkers()
    workers.gate.clear()
    async with engine(tmp_path / "e", root, workers=workers) as made:
        await until(lambda: made.indexer.open_tasks == 102)
        rebuild = asyncio.ensure_future(made.rebuild())
        await asyncio.sleep(0)
        workers.gate.set()
        await rebuild
        await complete(made)
        [space] = made.workspaces
        assert len(space.paths()) == 102
        assert space.progress.percentage == 100
        assert not made.indexer.error


async def test_engine_notices_a_saved_file(tmp_path: Path, root: Path) -> None:
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        (root / "a.py").write_text("def leopard(): pass\n")
        await until(lambda: "leopard" in (found(made, "a.py") or ""))


async def test_engine_reports_a_failing_disk_until_it_works_again(
    tmp_path: Path, root: Path
) -> None:
    workers = InlineWorkers()
    workers.failures = 1
    async with engine(tmp_path / "e", root, workers=workers) as made:
        await until(lambda: made.state is State.ERROR)
        await complete(made)
        await until(lambda: made.state is State.INDEXED)


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
    written(root, {f"more/{n}.py": f"x{n}" for n in range(2000)})
    before = set(threading.enumerate())
    async with engine(tmp_path / "e", root) as made:
        await until(lambda: made.indexer.open_tasks > 0)
        began = time.monotonic()
    assert time.monotonic() - began < 10
    left = {thread.name for thread in set(threading.enumerate()) - before}
    assert not left & {"indexer", "context-writer_0"}


async def test_engine_forgets_what_nobody_used_for_a_month(
    tmp_path: Path, root: Path
) -> None:
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        await asyncio.wrap_future(
            made.store.change(lambda db: db.execute("UPDATE workspace SET used = 1"))
        )
    async with engine(tmp_path / "e") as made:
        await asyncio.wrap_future(made.store.writing(lambda: None))
        assert totals(made.store)["blobs"] == 0


@pytest.mark.case("B100")
async def test_engine_indexes_odd_dates_once(tmp_path: Path, root: Path) -> None:
    os.utime(root / "a.py", (0, 0))
    os.utime(root / "src" / "b.py", (4294967295, 4294967295))
    written(root, {"c.py": "2038"})
    os.utime(root / "c.py", (2147483649, 2147483649))
    workers = InlineWorkers()
    async with engine(tmp_path / "e", root, workers=workers) as made:
        await complete(made)
        [space] = made.workspaces
        assert sorted(space.paths()) == ["a.py", "c.py", "src/b.py"]
        [sync] = made._syncs.values()
        await until(lambda: not (sync._timer or sync._tasks or made.indexer.open_tasks))
        count = len(workers.prepared)
        assert count <= 6  # each once more, because it was only just written
        await sync.scan()
        await complete(made)
        assert len(workers.prepared) == count
        assert space.counters.mtime_hits == 3


@pytest.mark.case("B101")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("with spaces and 'quotes\"", id="spaces"),
        pytest.param("new\nline", id="newline"),
        pytest.param("北岸", id="CJK"),
        pytest.param("😀", id="emoji"),
        pytest.param("dot.", id="dot"),
        pytest.param("$(touch x); `y` & -rf", id="shell"),
    ],
)
async def test_engine_accepts_a_workspace_with_an_odd_name(
    tmp_path: Path, name: str
) -> None:
    root = project(tmp_path / name, a__py="lion")
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        assert found(made, "a.py") == "lion"
        (root / "a.py").write_text("tiger")
        await until(lambda: found(made, "a.py") == "tiger")
    assert not (tmp_path / "x").exists()


@pytest.mark.case("B102")
async def test_engine_keeps_names_that_differ_in_case_or_form_apart(
    tmp_path: Path,
) -> None:
    names = ["A.py", "a.py", "caf\u00e9.py", "cafe\u0301.py"]
    root = written(tmp_path / "p", {name: name for name in names})
    there = sorted(entry.name for entry in root.iterdir())
    workers = InlineWorkers()
    async with engine(tmp_path / "e", root, workers=workers) as made:
        await complete(made)
        assert sorted(made.workspaces[0].paths()) == there
        [sync] = made._syncs.values()
        await until(lambda: not (sync._timer or sync._tasks or made.indexer.open_tasks))
        count = len(workers.prepared)
        await sync.scan()
        await complete(made)
        assert len(workers.prepared) == count


@pytest.mark.case("F24")
async def test_engine_never_mixes_versions_of_a_file_that_changes(
    tmp_path: Path,
) -> None:
    versions = [f"{letter}\n" * 500 for letter in "abcdef"]
    root = project(tmp_path / "p", a__txt=versions[0])
    path = root / "a.txt"
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            for text in versions:
                path.write_text(text)

    writer = threading.Thread(target=write)
    async with engine(tmp_path / "e", root) as made:
        writer.start()
        names = set()
        for _ in range(20):
            await made._syncs[made.workspaces[0].id].refresh(["a.txt"])
            await until(lambda: not made.indexer.open_tasks)
            with made.store.reading() as db:
                names |= {name for (name,) in db.execute("SELECT name FROM blob")}
        stop.set()
        writer.join()
        path.write_text(versions[0])
        good = {blob_name("a.txt", text.encode()) for text in (*versions, "")}
        prefixes = {
            blob_name("a.txt", text[:size].encode())
            for text in versions
            for size in range(len(text))
        }
        assert names <= good | prefixes  # never the start of one and the end of another
        await until(lambda: (found(made, "a.txt") or "").split() == ["a"] * 500)


async def test_engine_follows_a_folder_that_vanished_and_came_back(
    tmp_path: Path, root: Path
) -> None:
    async with engine(tmp_path / "e", root, poll_seconds=0.05) as made:
        await complete(made)
        [space] = made.workspaces
        root.rename(tmp_path / "away")
        await until(lambda: "its folder is gone" in space.status.note)
        assert space.status.phase is Phase.GONE
        (tmp_path / "away" / "new.py").write_text("lynx")
        (tmp_path / "away").rename(root)
        await until(lambda: found(made, "new.py") == "lynx" and not space.status.note)


@pytest.mark.case("F23")
async def test_engine_drops_a_file_that_is_ignored_while_a_worker_has_it(
    tmp_path: Path, root: Path
) -> None:
    written(root, {f"out/{n}.py": f"x{n}" for n in range(5)})
    workers = InlineWorkers()
    workers.gate.clear()
    async with engine(tmp_path / "e", root / "out", workers=workers) as made:
        await until(lambda: made.indexer.open_tasks == 5)
        [space] = made.workspaces
        written(root / "out", {".gitignore": "*\n"})
        await until(lambda: space.rules.reason("0.py") is SkipReason.IGNORED)
        await until(lambda: made.indexer.open_tasks <= 1)
        workers.gate.set()
        await until(lambda: space.paths() != [])  # the one that was under way
        await until(lambda: space.paths() == [])


async def test_engine_forgets_a_folder_once_if_asked_twice(
    tmp_path: Path, root: Path
) -> None:
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        done = [*await asyncio.gather(made.remove(root), made.remove(root))]
        assert done == [True, False]


@pytest.mark.parametrize("steps", range(6))
async def test_engine_finishes_the_work_of_a_caller_that_was_cancelled(
    tmp_path: Path, root: Path, steps: int
) -> None:
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
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


async def test_engine_reads_no_history_of_a_forgotten_workspace(
    tmp_path: Path, root: Path
) -> None:
    async with engine(tmp_path / "e", root) as made:
        [space] = made.workspaces
        await made.remove(root)
        assert made.history_of(space) is None


async def test_engine_forgets_a_folder_that_is_not_followed(
    tmp_path: Path, root: Path
) -> None:
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
    async with engine(tmp_path / "e") as made:
        assert totals(made.store)["blobs"] == 2
        assert await made.remove(root)
        assert totals(made.store)["blobs"] == 0
        assert not await made.remove(root)


async def test_engine_counts_what_was_read_and_what_clients_rely_on(
    tmp_path: Path, root: Path
) -> None:
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        [space] = made.workspaces
        assert space.counters.files_read == 2
        name = blob_name("a.py", (root / "a.py").read_bytes())
        await made.uploads.find_missing([name])
        assert space.counters.blobs_uploaded == 1


class Dying(InlineWorkers):
    """Workers whose parser dies of every file once, as the pool tells it."""

    def __init__(self) -> None:
        super().__init__()
        self.spared: list[str] = []

    def prepare(self, jobs: Iterable[ParseJob]) -> Iterator[ParseOutcome]:
        for told in super().prepare(jobs):
            job, made = told.job, told.prepared
            if made is not None and made.name in job.parser_crashers:
                self.spared.append(job.path)
            yield replace(told, job=replace(job, plain=True), plain=True)


async def test_engine_finds_the_old_version_of_a_file_until_the_new_one_is_searchable(
    tmp_path: Path, root: Path
) -> None:
    workers = InlineWorkers()
    async with engine(tmp_path / "e", root, workers=workers) as made:
        await complete(made)
        [space] = made.workspaces
        old, search = space.blob_of("a.py"), made.store.index.search
        workers.gate.clear()
        (root / "a.py").write_text("def puma(): pass\n")
        await until(lambda: made.indexer.open_tasks > 0)
        new = prepare("a.py", (root / "a.py").read_bytes())
        task = WorkspaceTask(space.id, "a.py", str(root))
        facts = facts_of((root / "a.py").stat())
        job = ParseJob(1, "a.py", root=str(root))
        made.store.put([(task, ParseOutcome(job, new, facts=facts))])
        view = View("between", space.ids(), 0)
        assert [hit.blob_id for hit in search({"lion": 1.0}, view)] == [old]
        assert search({"puma": 1.0}, view) == []
        made.store.flush()
        view = View("after", space.ids(), 0)
        assert search({"lion": 1.0}, view) == []
        assert len(search({"puma": 1.0}, view)) == 1
        workers.gate.set()
        await complete(made)


@pytest.mark.case("B77")
async def test_engine_tries_what_crashed_a_parser_again_at_the_next_start(
    tmp_path: Path, root: Path
) -> None:
    """A file never loses its definitions for good."""
    async with engine(tmp_path / "e", root, workers=Dying()) as made:
        await complete(made)
    workers = Dying()
    async with engine(tmp_path / "e", root, workers=workers) as made:
        await complete(made)
        assert sorted(workers.prepared) == ["a.py", "src/b.py"]
        assert workers.spared == []
    for tried in (["a.py", "src/b.py"], []):
        well = InlineWorkers()
        async with engine(tmp_path / "e", root, workers=well) as made:
            await complete(made)
            assert sorted(well.prepared) == tried


@pytest.mark.case("B77")
async def test_engine_rebuild_does_not_parse_again_what_crashed_a_parser(
    tmp_path: Path, root: Path
) -> None:
    workers = Dying()
    async with engine(tmp_path / "e", root, workers=workers) as made:
        await complete(made)
        assert workers.spared == []
        await made.rebuild()
        await complete(made)
        assert sorted(set(workers.spared)) == ["a.py", "src/b.py"]
        (root / "a.py").write_text("def mended(): pass\n")
        await until(lambda: (found(made, "a.py") or "").startswith("def mended"))
        assert workers.spared.count("a.py") == 1
