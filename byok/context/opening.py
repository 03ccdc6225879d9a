"""Opening the engine off the loop, and closing it in good order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from byok.context.engine import ContextEngine
from byok.context.indexer import Workers
from byok.context.options import Options
from byok.context.store import Store
from byok.context.workers import Pool


def _let_go(opening: asyncio.Task[Store]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


@asynccontextmanager
async def open_engine(
    database: Path, index: Path, options: Options
) -> AsyncIterator[ContextEngine]:
    """Open the engine, and close it in good order.

    Raises:
        NewerData, CorruptData, IndexInUse: the files cannot be used.
    """

    def workers(size: int) -> Workers:
        return Pool(size, limit=options.parse_seconds)

    # Opening takes seconds after a crash: not in the loop.
    opening = asyncio.ensure_future(asyncio.to_thread(Store, database, index))
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
