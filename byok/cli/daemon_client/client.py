"""Answer index requests: by the running daemon, else in this process.

Only one process can have the index open. So the command line and the MCP server ask the
daemon if one is running. Without a daemon they open the index themselves, and close it
as soon as a daemon runs.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from byok.cli.daemon_client.daemon import START_SECONDS, find_daemon, talking
from byok.core.chat import Json
from byok.core.daemon.instance import Instance
from byok.core.errors import DaemonGone, IndexInUse
from byok.core.platform.paths import Paths
from byok.core.routing import Service

if TYPE_CHECKING:
    from byok.search.index.files.roots import OwnFolders

_PATIENCE = 5.0  # with another process that has the index open
_PAUSE = 0.2


class Answering(Protocol):
    """Answers index requests: the daemon, or the index in this process."""

    async def answer(self, service: Service, body: Json) -> Json:
        """Answer one of the endpoints of the context."""


OpenOwn = Callable[[Iterable[Path]], AbstractAsyncContextManager[Answering]]


class _Open(NamedTuple):
    door: Answering
    daemon: Instance | None
    stack: AsyncExitStack


class LocalClient:
    """Sends requests to the daemon, or to an index in this process.

    It notices when a daemon starts or ends. Create it with `asking`.
    """

    def __init__(
        self,
        paths: Paths,
        open_own: OpenOwn,
        roots: Iterable[Path] = (),
        *,
        patience: float = _PATIENCE,
        start_seconds: float = START_SECONDS,
    ) -> None:
        """Open nothing yet.

        `roots` are folders to follow in addition to the declared ones. `patience` is
        how many seconds to wait for an index that another process has open.
        """
        self._paths = paths
        self._open_own = open_own
        self._roots = list(roots)
        self._patience = patience
        self._start_seconds = start_seconds
        self._opening = asyncio.Lock()
        self._open: _Open | None = None
        self._asked = 0

    async def ask(self, service: Service, body: Json) -> Json:
        """Return the answer of the daemon or of this process.

        Raises:
            ByokError: the same error in both cases.
        """
        deadline = time.monotonic() + self._patience
        while True:
            found = None
            self._asked += 1
            try:
                found = await self._open_door(asking=1)
                return await found.door.answer(service, body)
            except (DaemonGone, IndexInUse):
                await self._leave(found)
                if time.monotonic() > deadline:
                    raise
            finally:
                self._asked -= 1
            await asyncio.sleep(_PAUSE)

    async def daemon(self) -> Instance | None:
        """Return the daemon that answers; None if this process answers itself."""
        return (await self._open_door()).daemon

    async def look(self) -> None:
        """Open the index, or switch to a daemon that runs now.

        Raises:
            ByokError: neither is possible.
        """
        await self._open_door()

    async def follow(self, roots: Iterable[Path]) -> None:
        """Follow more folders: permanently by the daemon, else while this client lives.

        Raises:
            ConfigError: one cannot be a workspace.
        """
        found = await self._open_door()
        self._roots += roots
        if found.daemon is None:
            await self._leave(found)
        else:
            await self._declare(found.door)

    async def close(self) -> None:
        """Close the connection or the index."""
        await self._leave(self._open)

    async def _open_door(self, *, asking: int = 0) -> _Open:
        """Return the open daemon or index, opening it if needed.

        `asking` is how many of the requests in progress are the caller's own.
        """
        async with self._opening:
            found = self._open
            if found and found.daemon is None and self._asked <= asking:
                found = await self._rather_a_daemon(found)
            if found is None:
                daemon = await asyncio.to_thread(
                    find_daemon, self._paths, self._start_seconds
                )
                found = await self._enter(daemon)
            self._open = found
            return found

    async def _rather_a_daemon(self, own: _Open) -> _Open | None:
        """Close this process's own index if a daemon runs now."""
        if not self._paths.daemon.exists():
            return own
        if await asyncio.to_thread(find_daemon, self._paths, 0) is None:
            return own
        self._open = None
        await own.stack.aclose()
        return None

    async def _enter(self, daemon: Instance | None) -> _Open:
        async with AsyncExitStack() as stack:
            if daemon is None:
                opening = self._open_own(self._check_roots())
            else:
                opening = talking(daemon, self._paths)
            door = await stack.enter_async_context(opening)
            if daemon is not None:
                await self._declare(door)
            return _Open(door, daemon, stack.pop_all())

    @property
    def own_folders(self) -> "OwnFolders":
        """The folders of byok's, which cannot be workspaces."""
        from byok.search.index.files.roots import OwnFolders

        return OwnFolders(self._paths.folders)

    def _check_roots(self) -> list[Path]:
        if not self._roots:
            return []
        from byok.search.index.files.roots import check_root

        own = self.own_folders
        return [check_root(root, own) for root in self._roots]

    async def _declare(self, door: Answering) -> None:
        for root in self._roots:
            await door.answer(Service.INDEX_ADD, {"root": str(root)})

    async def _leave(self, found: _Open | None) -> None:
        """Close `found` unless it is closed already."""
        async with self._opening:
            if found is not None and self._open is found:
                self._open = None
                await found.stack.aclose()


@asynccontextmanager
async def asking(
    paths: Paths,
    open_own: OpenOwn,
    roots: Iterable[Path] = (),
    *,
    patience: float = _PATIENCE,
) -> AsyncIterator[LocalClient]:
    """Give a client that opens the daemon or index on demand; close it at the end."""
    client = LocalClient(paths, open_own, roots, patience=patience)
    try:
        yield client
    finally:
        await client.close()
