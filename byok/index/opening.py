"""Opens the code index without blocking the event loop, and closes it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from byok.index.engine import ContextEngine
from byok.index.indexer import Workers
from byok.index.options import IndexOptions
from byok.index.parse.worker_pool import Pool
from byok.index.store.lexical import LexicalIndex
from byok.index.store.store import Store
from byok.index.store.tantivy_index import TantivyIndex


def _let_go(opening: asyncio.Task[Store]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


@asynccontextmanager
async def open_engine(
    database: Path,
    index: Path,
    options: IndexOptions,
    *,
    damage: str = "",
    open_index: Callable[[Path], LexicalIndex] = TantivyIndex,
) -> AsyncIterator[ContextEngine]:
    """Open the code index; close it when the block ends.

    `open_index` opens the lexical index in the folder `index`; `damage` is what was
    found of the database while it was in use, which is then set aside.

    Raises:
        CannotStart, IndexInUse: the files cannot be used.
    """

    def workers(size: int) -> Workers:
        return Pool(size, limit=options.parse_seconds)

    # Opening takes seconds after a crash: not in the loop.
    opened = partial(Store, database, index, damage=damage, open_index=open_index)
    opening = asyncio.ensure_future(asyncio.to_thread(opened))
    try:
        store = await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_let_go)  # else its files stay locked
        raise
    engine = ContextEngine(store, options, workers)
    try:
        await engine.start()
        yield engine
    finally:
        await engine.close()
