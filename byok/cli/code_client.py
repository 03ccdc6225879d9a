"""Ask about code: the running daemon, or an index in this process if there is none."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from byok.cli.command_context import load
from byok.cli.daemon_client.client import Answering, LocalClient, asking
from byok.core.platform.paths import find_paths

T = TypeVar("T")
WorkspacesOption = Annotated[
    list[Path] | None,
    typer.Option("--workspace", "-w", help="A folder; repeat for more.", metavar="DIR"),
]


def with_client(
    work: Callable[[LocalClient], Awaitable[T]],
    *,
    config: Path | None = None,
    roots: Iterable[Path] = (),
) -> T:
    """Run `work` with a client that follows these folders."""

    async def run() -> T:
        async with asking(find_paths(), opener(config), roots) as client:
            return await work(client)

    return asyncio.run(run())


def opener(
    config: Path | None,
) -> Callable[[Iterable[Path]], AbstractAsyncContextManager[Answering]]:
    """Return a function that reads the settings and opens the index in this process."""

    @asynccontextmanager
    async def open_own(roots: Iterable[Path]) -> AsyncIterator[Answering]:
        from byok.server.own_answers import open_answers  # it loads the server

        settings, paths = load(config)
        async with open_answers(settings, paths, roots) as answers:
            yield answers

    return open_own


def whole(path: Path) -> Path:
    """Return an absolute path; links are resolved in all parts but the last."""
    absolute = path.expanduser().absolute()
    return absolute.parent.resolve() / absolute.name


def folders(given: Iterable[Path] | None) -> list[Path]:
    """Return absolute paths with links resolved; they need not exist."""
    return [path.expanduser().absolute().resolve() for path in given or ()]
