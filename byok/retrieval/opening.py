"""Settings become an open code context."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from byok.config import Settings
from byok.context.options import Options
from byok.paths import Paths
from byok.retrieval.code_context import CodeContext


@asynccontextmanager
async def open_context(
    settings: Settings, paths: Paths, roots: Iterable[Path] = ()
) -> AsyncIterator[CodeContext]:
    """Open what byok knows of code, and follow the declared folders.

    Raises:
        NewerData, CorruptData, IndexInUse: its files cannot be used.
    """
    own = settings.context
    options = Options(
        roots=[*map(Path, own.workspaces), *roots],
        max_files=own.max_files,
        extensions=own.extensions,
        allow_secret=own.allow_secret,
        workers=own.workers,
        parse_seconds=own.parse_seconds,
        store_bytes=own.store_mb * 2**20,
        own_folders=(paths.config_dir, paths.state_dir, paths.data_dir),
    )
    mode = settings.retrieval.mode
    context = CodeContext(paths.database, paths.index, options, mode)
    try:
        await context.start()
        yield context
    finally:
        await context.close()
