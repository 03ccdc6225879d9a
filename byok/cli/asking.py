"""How commands ask about code: the daemon if one runs, else in this process."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from byok.cli.context import load
from byok.paths import find_paths

if TYPE_CHECKING:
    from byok.local.client import Answering, LocalClient

T = TypeVar("T")
WorkspacesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--workspace", "-w", help="A folder; may be given again.", metavar="DIR"
    ),
]


def with_client(
    work: "Callable[[LocalClient], Awaitable[T]]",
    *,
    config: Path | None = None,
    roots: Iterable[Path] = (),
) -> T:
    """Run some work with a client that follows these folders."""
    from byok.local.client import asking

    async def run() -> T:
        async with asking(find_paths(), opener(config), roots) as client:
            return await work(client)

    return asyncio.run(run())


def opener(
    config: Path | None,
) -> "Callable[[Iterable[Path]], AbstractAsyncContextManager[Answering]]":
    """Return what opens the context in this process; settings are read only then."""

    def open_own(
        roots: Iterable[Path],
    ) -> "AbstractAsyncContextManager[Answering]":
        from byok.retrieval.opening import open_context

        settings, paths = load(config)
        return open_context(settings, paths, roots)

    return open_own


def whole(path: Path) -> Path:
    """Return a path as byok knows it: absolute, through no link but its last name."""
    absolute = path.expanduser().absolute()
    return absolute.parent.resolve() / absolute.name


def folders(given: Iterable[Path] | None) -> list[Path]:
    """Return folders in their real form; whether they exist is asked later."""
    return [path.expanduser().absolute().resolve() for path in given or ()]
