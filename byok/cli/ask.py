"""How commands ask: the daemon if one runs, else in this process."""

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
from byok.routing import Service

if TYPE_CHECKING:
    from byok.chat import Json
    from byok.daemon_client.client import Answering, LocalClient

T = TypeVar("T")
WorkspacesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--workspace", "-w", help="A folder; may be given again.", metavar="DIR"
    ),
]


def ask_daemon(service: Service, body: "Json | None" = None) -> "Json | None":
    """Return what the running daemon answers; None where none runs.

    Raises:
        ByokError: one runs and does not answer, or the error of its own.
    """
    from byok.daemon.token import read_token
    from byok.daemon_client.daemon import talking
    from byok.daemon_client.find import find_daemon

    paths = find_paths()
    daemon = find_daemon(paths)
    if daemon is None:
        refuse_if_silent(paths)
        return None

    async def ask() -> "Json":
        async with talking(daemon, read_token(paths.token)) as door:
            return await door.answer(service, body or {})

    return asyncio.run(ask())


def refuse_if_silent(paths: Paths) -> None:
    """Tell a daemon that does not prove to be it from one that does not run.

    Raises:
        NotReady: another process holds the lock of the daemon.
    """
    from byok.daemon.instance import is_held

    if is_held(paths):
        raise NotReady(
            "byok is starting, or hangs: it does not prove to be the daemon.",
            hint=f"Try again; if that stays so, end the process that {paths.daemon} "
            "names.",
        )


def tell_not_running() -> None:
    """Say that what is shown is no running daemon's."""
    tell("byok is not running: this is what the settings say.")


def with_client(
    work: "Callable[[LocalClient], Awaitable[T]]",
    *,
    config: Path | None = None,
    roots: Iterable[Path] = (),
) -> T:
    """Run some work with a client that follows these folders."""
    from byok.daemon_client.client import asking

    async def run() -> T:
        async with asking(find_paths(), opener(config), roots) as client:
            return await work(client)

    return asyncio.run(run())


def opener(
    config: Path | None,
) -> "Callable[[Iterable[Path]], AbstractAsyncContextManager[Answering]]":
    """Return what opens the index in this process; settings are read only then."""

    @asynccontextmanager
    async def open_own(roots: Iterable[Path]) -> "AsyncIterator[Answering]":
        from byok.server.code_endpoints import CodeEndpoints
        from byok.wiring.open_context import open_context

        settings, paths = load(config)
        async with open_context(settings, paths, roots) as context:
            yield CodeEndpoints(context)

    return open_own


def whole(path: Path) -> Path:
    """Return a path as byok knows it: absolute, through no link but its last name."""
    absolute = path.expanduser().absolute()
    return absolute.parent.resolve() / absolute.name


def folders(given: Iterable[Path] | None) -> list[Path]:
    """Return folders in their real form; whether they exist is asked later."""
    return [path.expanduser().absolute().resolve() for path in given or ()]
