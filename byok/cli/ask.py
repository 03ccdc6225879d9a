"""Ask the running daemon, or do the work in this process if there is none."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from byok.cli.command_context import load
from byok.cli.output import tell
from byok.errors import NotReady
from byok.platform.paths import Paths, find_paths

if TYPE_CHECKING:
    from byok.chat import Json
    from byok.daemon_client.client import Answering, LocalClient

T = TypeVar("T")
WorkspacesOption = Annotated[
    list[Path] | None,
    typer.Option("--workspace", "-w", help="A folder; repeat for more.", metavar="DIR"),
]


def ask_daemon(service: str, body: "Json | None" = None) -> "Json | None":
    """Return what a Service or a feature answers; None if no daemon is running.

    Raises:
        ByokError: a daemon runs and does not answer, or its own error.
    """
    from byok.daemon_client.daemon import talking
    from byok.daemon_client.find import find_daemon

    paths = find_paths()
    daemon = find_daemon(paths)
    if daemon is None:
        refuse_if_silent(paths)
        return None

    async def ask() -> "Json":
        async with talking(daemon, paths) as door:
            return await door.answer(service, body or {})

    return asyncio.run(ask())


def refuse_if_silent(paths: Paths) -> None:
    """Do nothing if no daemon runs.

    Raises:
        NotReady: a process holds the daemon's lock but fails the challenge.
    """
    from byok.daemon.instance import is_held

    if is_held(paths):
        raise NotReady(
            "byok is starting, or hangs: the daemon does not answer.",
            hint=f"Try again. If it stays so, end the process whose pid is in "
            f"{paths.daemon}.",
        )


def tell_not_running() -> None:
    """Say that the output comes from the settings, not from a running daemon."""
    tell("byok is not running; this comes from the settings file.")


def with_client(
    work: "Callable[[LocalClient], Awaitable[T]]",
    *,
    config: Path | None = None,
    roots: Iterable[Path] = (),
) -> T:
    """Run `work` with a client that follows these folders."""
    from byok.daemon_client.client import asking

    async def run() -> T:
        async with asking(find_paths(), opener(config), roots) as client:
            return await work(client)

    return asyncio.run(run())


def opener(
    config: Path | None,
) -> "Callable[[Iterable[Path]], AbstractAsyncContextManager[Answering]]":
    """Return a function that reads the settings and opens the index in this process."""

    @asynccontextmanager
    async def open_own(roots: Iterable[Path]) -> "AsyncIterator[Answering]":
        from byok.server.own_answers import open_answers

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
