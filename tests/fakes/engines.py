"""A context engine without worker processes, and what a test puts around it."""

import asyncio
import queue
import threading
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
)
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from byok.core.errors import IndexFailed
from byok.search.index.engine import ContextEngine
from byok.search.index.files.reading import Folder, Unreadable
from byok.search.index.parse.prepare import prepare
from byok.search.index.store.chunk_index import ChunkScore, View
from byok.search.index.store.store import Store
from byok.search.index.types import (
    MAX_BYTES,
    IndexOptions,
    ParseJob,
    ParseOutcome,
    Phase,
)
from byok.search.index.workspace.watch import ChangedPaths
from byok.search.retrieval.model_aids import FindNear, NearChunks
from byok.search.retrieval.query import Query
from byok.search.retrieval.ranker import Ranker, Ranking
from byok.search.retrieval.scope import Scope
from tests.fakes.patience import PATIENCE, until


class InlineWorkers:
    """Prepares each job where it is asked to; `gate` holds it up, `failures` break it.

    `prepared` are the paths in their order.
    """

    def __init__(self) -> None:
        self.prepared: list[str] = []
        self.closed = 0
        self.failures = 0
        self.gate = threading.Event()
        self.gate.set()

    def prepare(self, jobs: Iterable[ParseJob]) -> Iterator[ParseOutcome]:
        for job in jobs:
            if self.failures:
                self.failures -= 1
                raise OSError("no process can be started")
            self.gate.wait(PATIENCE)
            self.prepared.append(job.path)
            yield outcome(job)

    def close(self) -> None:
        self.closed += 1


def outcome(job: ParseJob) -> ParseOutcome:
    """Read and prepare one file version."""
    content, facts = job.content, None
    if content is None:
        try:
            with Folder(Path(job.root)) as folder:
                content, facts = folder.read(job.path, MAX_BYTES)
        except Unreadable as error:
            return ParseOutcome(job.key, None, error.reason)
    made = prepare(job.path, content, plain=job.plain)
    return ParseOutcome(job.key, made, made.reason, facts)


@asynccontextmanager
async def engine(
    folder: Path, *roots: Path, workers: InlineWorkers | None = None, **options: Any
) -> AsyncIterator[ContextEngine]:
    """Open an engine whose files are in `folder`, and follow `roots`."""
    used = workers or InlineWorkers()
    made = ContextEngine(
        Store(folder / "data.db", folder / "index"),
        IndexOptions(roots=roots, **options),
        lambda size: used,
    )
    try:
        await made.start()
        yield made
    finally:
        used.gate.set()
        await made.close()


def project(root: Path, **files: str) -> Path:
    """Make a folder with files; `a__py` is `a.py`, `src___a__py` is `src/a.py`."""
    return written(
        root,
        {n.replace("___", "/").replace("__", "."): text for n, text in files.items()},
    )


def written(root: Path, files: dict[str, str]) -> Path:
    """Write files below a folder, by their paths."""
    root.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    return root


async def complete(made: ContextEngine) -> None:
    """Wait until everything is searchable."""
    await until(
        lambda: (
            not made.indexer.open_tasks
            and all(space.status.phase is Phase.COMPLETE for space in made.workspaces)
        )
    )


@asynccontextmanager
async def indexed(
    folder: Path, *roots: Path, workers: InlineWorkers | None = None, **options: Any
) -> AsyncIterator[ContextEngine]:
    """Open an engine, and wait until everything is searchable."""
    async with engine(folder, *roots, workers=workers, **options) as made:
        await complete(made)
        yield made


class FakeVectors:
    """Finds the same chunks for each question, once `come` is set."""

    def __init__(self, near: Iterable[ChunkScore] | None) -> None:
        self.near = None if near is None else list(near)
        self.come = asyncio.Event()
        self.come.set()
        self.questions: list[str] = []
        self.cancelled = 0
        self.asked: Collection[int] = ()

    async def open(self, engine: ContextEngine) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""

    async def begin(self, question: str) -> FindNear | None:
        """Return what finds the given chunks; None if none were given."""
        self.questions.append(question)
        try:
            await self.come.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return None if self.near is None else self._find

    async def _find(self, view: View, blob_ids: Collection[int]) -> NearChunks:
        self.asked = blob_ids
        return NearChunks([c for c in self.near or () if c.blob_id in view.ids], {})


class BrokenRanker(Ranker):
    """Stands for an index that was damaged meanwhile."""

    def rank_by_words(self, query: Query, scope: Scope) -> Ranking:
        raise IndexFailed("The index is damaged.", hint="Mend it.")


Step = ChangedPaths | Exception


class PlayedWatches:
    """Makes watches that play what stands in `queue`: paths, "anything", errors.

    `error` is raised when a folder is entered, `made` counts how often all began anew.
    """

    def __init__(self, *steps: Step) -> None:
        self.queue: queue.SimpleQueue[Step] = queue.SimpleQueue()
        for step in steps:
            self.queue.put(step)
        self.entered: list[str] = []
        self.error: OSError | None = None
        self.made = 0

    def __call__(self, root: Path) -> "_Played":
        self.made += 1
        return _Played(self)

    def told(self, *paths: str) -> None:
        """Let something happen to paths."""
        self.queue.put(frozenset(paths))


class _Played:
    def __init__(self, play: PlayedWatches) -> None:
        self._play = play
        self._closing = threading.Event()

    def enter(self, path: str) -> None:
        if self._play.error:
            raise self._play.error
        self._play.entered.append(path)

    def remove_unentered(self, tops: Collection[str], entered: Collection[str]) -> None:
        pass

    def follow(self, put: Callable[[ChangedPaths], None]) -> None:
        put(frozenset())
        while not self._closing.is_set():
            try:
                step = self._play.queue.get(timeout=0.01)
            except queue.Empty:
                continue
            if isinstance(step, Exception):
                raise step
            put(step)

    def close(self) -> None:
        self._closing.set()
