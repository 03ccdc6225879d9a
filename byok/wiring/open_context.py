"""Open the code index as the settings say."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from byok.config import Settings
from byok.index.types import IndexOptions
from byok.platform.paths import Paths
from byok.retrieval.code_context import CodeContext
from byok.retrieval.model_aids import VectorSearch

if TYPE_CHECKING:
    from byok.retrieval.ripgrep import TextSearch


@asynccontextmanager
async def open_context(
    settings: Settings,
    paths: Paths,
    roots: Iterable[Path] = (),
    vectors: VectorSearch | None = None,
) -> AsyncIterator[CodeContext]:
    """Open the code index, and follow the configured workspaces and `roots`.

    `vectors` is told which index is open.

    Raises:
        CannotStart: the database is damaged, or of a later version.
        IndexInUse: another process has the index open.
    """
    options = index_options(settings, paths, roots)
    mode = settings.retrieval.mode
    context = CodeContext(paths.database, paths.index, options, mode, vectors)
    try:
        await context.start()
        yield context
    finally:
        await context.close()


def text_search(
    settings: Settings, paths: Paths, roots: Iterable[Path] = ()
) -> "TextSearch":
    """Return a search with ripgrep, for when another process has the index open."""
    from byok.index.files.roots import rules_of
    from byok.platform.programs import find_program
    from byok.retrieval.ripgrep import Ripgrep, TextSearch

    options = index_options(settings, paths, roots)
    ripgrep = Ripgrep(lambda: find_program("rg", never=options.roots))
    return TextSearch(ripgrep, lambda root: rules_of(root, options))


def index_options(
    settings: Settings, paths: Paths, roots: Iterable[Path] = ()
) -> IndexOptions:
    """Return what the index is told: the settings, and byok's own folders."""
    own = settings.context
    return IndexOptions(
        roots=[*map(Path, own.workspaces), *roots],
        max_files=own.max_files,
        extensions=own.extensions,
        allow_secret=own.allow_secret,
        workers=own.workers,
        parse_seconds=own.parse_seconds,
        store_bytes=own.store_mb * 2**20,
        own_folders=paths.folders,
    )
