"""Find this user's running daemon, and ask it, or do its work in this process."""

import asyncio
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

import orjson
from msgspec import Struct, field

from byok.core.chat import Json
from byok.core.daemon.challenge import derive_owner_token, is_serving, verify_daemon
from byok.core.daemon.instance import Instance, find_instance, is_held
from byok.core.daemon.token import read_token
from byok.core.errors import (
    NO_UPSTREAM,
    BadRequest,
    ByokError,
    ConfigError,
    DaemonGone,
    IndexFailed,
    IndexInUse,
    KeyMissing,
    NotReady,
)
from byok.core.platform.installation import make_plain
from byok.core.platform.paths import Paths, find_paths
from byok.core.routing import OWN_PATHS, Service

if TYPE_CHECKING:
    import aiohttp

    from byok.search.index.files.roots import OwnFolders


# Answers a request to a Service or a feature: the daemon, or the index in this process.
Ask: TypeAlias = Callable[[str, Json], Awaitable[Json]]
START_SECONDS = 3.0
_PAUSE = 0.2
# What the daemon says that its callers tell apart, by code.
_TYPES: Mapping[str, type[ByokError]] = {
    **{kind.code: kind for kind in (ConfigError, KeyMissing, IndexInUse, IndexFailed)},
    NO_UPSTREAM: BadRequest,
}
_CONNECT_SECONDS, _ANSWER_SECONDS = 5.0, 300.0


def find_daemon(paths: Paths, seconds: float = START_SECONDS) -> Instance | None:
    """Return the daemon if it passes the challenge, else None; blocks.

    Waits up to `seconds` for one that is just starting. Nothing is sent before the
    challenge is passed.
    """
    deadline = time.monotonic() + seconds
    while is_held(paths):
        daemon = find_instance(paths)
        if daemon is not None and verify_daemon(daemon, read_token(paths.owner_secret)):
            return daemon
        if time.monotonic() >= deadline:
            break
        time.sleep(_PAUSE)
    return None


@asynccontextmanager
async def talking(daemon: Instance, paths: Paths) -> AsyncIterator[Ask]:
    """Give what asks a daemon that has passed the challenge, over one connection.

    Raises:
        ConfigError: the file with the owner's secret is not private.
    """
    import aiohttp

    timeout = aiohttp.ClientTimeout(
        total=_ANSWER_SECONDS, sock_connect=_CONNECT_SECONDS
    )
    secret = read_token(paths.owner_secret)
    token = derive_owner_token(secret, daemon.port, daemon.instance)
    async with aiohttp.ClientSession(
        daemon.url,
        headers={
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
        },
        timeout=timeout,
        trust_env=False,
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:
        yield partial(_post, session)


async def _post(session: "aiohttp.ClientSession", service: str, body: Json) -> Json:
    """Send a request to a Service or a feature, and return the answer.

    Raises:
        NotReady: the daemon does not answer, is gone, or has another version.
        ByokError: as raised by the daemon.
        ConfigError: the name of a file or folder is no text.
    """
    import aiohttp

    data = _encode(body)
    path = OWN_PATHS.get(service, f"/byok/{service}")
    try:
        async with session.post(path, data=data, allow_redirects=False) as response:
            status, raw = response.status, await response.read()
    except TimeoutError as error:
        raise NotReady("The byok daemon did not answer in time.") from error
    except (aiohttp.ClientError, OSError, RuntimeError) as error:
        raise DaemonGone("The byok daemon has ended.") from error
    if status == 401:  # the token was replaced, or somebody else is there now
        raise DaemonGone(
            "The byok daemon refused the token.",
            hint="Was byok updated meanwhile? Then restart it: byok restart",
        )
    return _decode_answer(status, raw)


def _encode(body: Json) -> bytes:
    """Write a request.

    Raises:
        ConfigError: the name of a file or folder is no text.
    """
    try:
        return orjson.dumps(body)
    except TypeError as error:
        raise ConfigError(
            "A name in this command is not valid UTF-8.",
            hint="Rename the file or the folder.",
        ) from error


def _decode_answer(status: int, raw: bytes) -> Json:
    try:
        answer = orjson.loads(raw)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise NotReady(f"The byok daemon gave no usable answer ({status}).")
    if status == 200 and answer:
        return answer
    error = answer.get("error")
    if status == 200 or not isinstance(error, dict):  # it does not know this path
        raise NotReady(
            "The running byok daemon has another version.",
            hint="Restart it: byok stop, then byok serve",
            code="other_version",
        )
    code = str(error.get("code", ""))
    raise _TYPES.get(code, ByokError)(
        make_plain(str(error.get("message", ""))),
        code=code,
        hint=make_plain(str(error.get("hint", ""))),
        status=status,
        retryable=error.get("retryable") is True,
    )


def ask_daemon(service: str, body: Json | None = None) -> Json | None:
    """Return what a Service or a feature answers; None if no daemon is running.

    Raises:
        ByokError: a daemon runs and does not answer, or its own error.
    """
    paths = find_paths()
    daemon = find_or_refuse(paths)
    if daemon is None:
        return None
    return asyncio.run(ask_instance(daemon, paths, service, body or {}))


async def ask_instance(
    daemon: Instance, paths: Paths, service: str, body: Json
) -> Json:
    """Return what a daemon answers that has passed the challenge.

    Raises:
        ByokError: it does not answer, or its own error.
    """
    async with talking(daemon, paths) as ask:
        return await ask(service, body)


def find_or_refuse(paths: Paths) -> Instance | None:
    """Return the daemon; None if none runs.

    Raises:
        NotReady: a process holds the daemon's lock but fails the challenge.
    """
    daemon = find_daemon(paths)
    if daemon is None and is_held(paths):
        found = find_instance(paths)
        if found is not None and is_serving(found):
            raise NotReady(
                f"The byok that runs (pid {found.pid}) is of an earlier version, which "
                "this command cannot ask.",
                hint=f"End it, and start it again: kill {found.pid}; byok serve. As a "
                "service: byok service restart.",
            )
        raise NotReady(
            "byok is starting, or hangs: the daemon does not answer.",
            hint=f"Try again. If it stays so, end the process whose pid is in "
            f"{paths.daemon}.",
        )
    return daemon


# Answer index requests: by the running daemon, else in this process.
#
# Only one process can have the index open. So the command line and the MCP server ask
# the daemon if one is running. Without a daemon they open the index themselves, and
# close it as soon as a daemon runs.


_PATIENCE = 5.0  # with another process that has the index open
OpenOwn = Callable[[Iterable[Path]], AbstractAsyncContextManager[Ask]]


class _Open(NamedTuple):
    ask: Ask
    daemon: Instance | None
    stack: AsyncExitStack


class LocalClient(Struct, eq=False):
    """Sends requests to the daemon, or to an index in this process.

    It notices when a daemon starts or ends, and is closed at the end of a block.

    `roots` are folders to follow in addition to the declared ones. `patience` is how
    many seconds to wait for an index that another process has open.
    """

    paths: Paths
    open_own: OpenOwn
    roots: Sequence[Path] = ()
    patience: float = _PATIENCE
    start_seconds: float = START_SECONDS
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    _open: _Open | None = None
    _asked: int = 0

    async def ask(self, service: Service, body: Json) -> Json:
        """Return the answer of the daemon or of this process.

        Raises:
            ByokError: the same error in both cases.
        """
        deadline = time.monotonic() + self.patience
        _encode(body)  # this process could take what the daemon cannot
        while True:
            found = None
            self._asked += 1
            try:
                found = await self._open_door(asking=1)
                return await found.ask(service, body)
            except (DaemonGone, IndexInUse):
                await self._leave(found)
                if time.monotonic() > deadline:
                    raise
            finally:
                self._asked -= 1
            await asyncio.sleep(_PAUSE)

    async def daemon(self) -> Instance | None:
        """Return the daemon that answers; None if this process answers itself.

        Opens the index if none runs, or switches to one that runs now.

        Raises:
            ByokError: neither is possible.
        """
        return (await self._open_door()).daemon

    async def follow(self, roots: Iterable[Path]) -> None:
        """Follow more folders: permanently by the daemon, else while this client lives.

        Raises:
            ConfigError: one cannot be a workspace.
        """
        found = await self._open_door()
        self.roots = [*self.roots, *roots]
        if found.daemon is None:
            await self._leave(found)
        else:
            await self._declare(found.ask)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *reason: object) -> None:
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
                    find_daemon, self.paths, self.start_seconds
                )
                found = await self._enter(daemon)
            self._open = found
            return found

    async def _rather_a_daemon(self, own: _Open) -> _Open | None:
        """Close this process's own index if a daemon runs now."""
        if not self.paths.daemon.exists():
            return own
        if await asyncio.to_thread(find_daemon, self.paths, 0) is None:
            return own
        self._open = None
        await own.stack.aclose()
        return None

    async def _enter(self, daemon: Instance | None) -> _Open:
        async with AsyncExitStack() as stack:
            if daemon is None:
                opening = self.open_own(self._check_roots())
            else:
                opening = talking(daemon, self.paths)
            ask = await stack.enter_async_context(opening)
            if daemon is not None:
                await self._declare(ask)
            return _Open(ask, daemon, stack.pop_all())

    @property
    def own_folders(self) -> "OwnFolders":
        """The folders of byok's, which cannot be workspaces."""
        from byok.search.index.files.roots import OwnFolders

        return OwnFolders(self.paths.folders)

    def _check_roots(self) -> list[Path]:
        if not self.roots:
            return []
        from byok.search.index.files.roots import check_root

        own = self.own_folders
        return [check_root(root, own) for root in self.roots]

    async def _declare(self, ask: Ask) -> None:
        for root in self.roots:
            await ask(Service.INDEX_ADD, {"root": str(root)})

    async def _leave(self, found: _Open | None) -> None:
        async with self._opening:
            if found is not None and self._open is found:
                self._open = None
                await found.stack.aclose()
