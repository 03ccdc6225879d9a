"""A context engine inside the test: no worker processes, small projects, deadlines."""

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from byok.search.index.engine import ContextEngine
from byok.search.index.files.reading import Folder, Unreadable
from byok.search.index.parse.prepare import prepare
from byok.search.index.store.store import Store
from byok.search.index.types import (
    MAX_BYTES,
    IndexOptions,
    ParseJob,
    ParseOutcome,
    Phase,
)
from tests.fakes.patience import PATIENCE


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
            return ParseOutcome(job, None, error.reason)
    made = prepare(job.path, content, plain=job.plain)
    return ParseOutcome(job, made, made.reason, facts)


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


async def until(
    holds: Callable[[], bool | Awaitable[bool]], seconds: float = PATIENCE
) -> None:
    """Wait until something holds; fails after some seconds."""
    async with asyncio.timeout(seconds):
        while True:
            found = holds()
            if await found if inspect.isawaitable(found) else found:
                return
            await asyncio.sleep(0.01)


async def complete(made: ContextEngine) -> None:
    """Wait until everything is searchable."""
    await until(
        lambda: (
            not made.indexer.open_tasks
            and all(space.status.phase is Phase.COMPLETE for space in made.workspaces)
        )
    )
