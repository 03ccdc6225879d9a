"""Find this user's running daemon and send it requests, or open the index here.

Only one process can have the index open. So the command line and the MCP server ask the
daemon if one runs. Without a daemon they open the index in their own process, and close
it as soon as a daemon runs.
"""

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
from byok.core.routing import Service

if TYPE_CHECKING:
    import aiohttp

    from byok.search.index.files.roots import OwnFolders


# Sends a request to a Service or a feature of the daemon, or to this process's index.
Ask: TypeAlias = Callable[[str, Json], Awaitable[Json]]
OpenIndex: TypeAlias = Callable[[Iterable[Path]], AbstractAsyncContextManager[Ask]]
START_SECONDS = 3.0
_POLL_SECONDS = 0.2
_LOCK_SECONDS = 5.0  # how long to wait for an index that another process has open
# The classes of the daemon's errors that callers tell apart, by code.
_ERROR_TYPES: Mapping[str, type[ByokError]] = {
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
        time.sleep(_POLL_SECONDS)
    return None


@asynccontextmanager
async def talking(daemon: Instance, paths: Paths) -> AsyncIterator[Ask]:
    """Open a session with a daemon that has passed the challenge; yield its `Ask`.

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
        NotReady: the daemon does not answer, has ended, or has another version.
        ByokError: the daemon answered with this error.
        ConfigError: the name of a file or folder is not valid UTF-8.
    """
    import aiohttp

    data = _encode(body)
    path = service.own_path if isinstance(service, Service) else f"/byok/{service}"
    try:
        async with session.post(path, data=data, allow_redirects=False) as response:
            status, raw = response.status, await response.read()
    except TimeoutError as error:
        raise NotReady("The byok daemon did not answer in time.") from error
    except (aiohttp.ClientError, OSError, RuntimeError) as error:
        raise DaemonGone("The byok daemon has ended.") from error
    if status == 401:  # the token was replaced, or another program listens
        raise DaemonGone(
            "The byok daemon refused the token.",
            hint="Was byok updated meanwhile? Then restart it: byok restart",
        )
    return _decode_answer(status, raw)


def _encode(body: Json) -> bytes:
    """Encode the body of a request.

    Raises:
        ConfigError: the name of a file or folder is not valid UTF-8.
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
    if status == 200 or not isinstance(error, dict):  # the path is unknown to it
        raise NotReady(
            "The running byok daemon has another version.",
            hint="Restart it: byok stop, then byok serve",
            code="other_version",
        )
    code = str(error.get("code", ""))
    raise _ERROR_TYPES.get(code, ByokError)(
        make_plain(str(error.get("message", ""))),
        code=code,
        hint=make_plain(str(error.get("hint", ""))),
        status=status,
        retryable=error.get("retryable") is True,
    )


def ask_daemon(service: str, body: Json | None = None) -> Json | None:
    """Return the answer of a Service or a feature; None if no daemon is running.

    Raises:
        ByokError: a daemon runs and does not answer, or answers with this error.
    """
    paths = find_paths()
    daemon = find_or_refuse(paths)
    if daemon is None:
        return None
    return asyncio.run(ask_instance(daemon, paths, service, body or {}))


async def ask_instance(
    daemon: Instance, paths: Paths, service: str, body: Json
) -> Json:
    """Return the answer of a daemon that has passed the challenge.

    Raises:
        ByokError: it does not answer, or answers with this error.
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
        other = find_instance(paths)
        if other is not None and is_serving(other):
            raise NotReady(
                f"The byok that runs (pid {other.pid}) is of an earlier version, which "
                "this command cannot ask.",
                hint=f"End it, and start it again: kill {other.pid}; byok serve. As a "
                "service: byok service restart.",
            )
        raise NotReady(
            "byok is starting, or hangs: the daemon does not answer.",
            hint=f"Try again. If it stays so, end the process whose pid is in "
            f"{paths.daemon}.",
        )
    return daemon


class _Backend(NamedTuple):
    """What answers requests: a daemon, or the index in this process (`daemon` None)."""

    ask: Ask
    daemon: Instance | None
    stack: AsyncExitStack


class LocalClient(Struct, eq=False):
    """Sends requests to the daemon, or to an index in this process.

    It switches when a daemon starts or ends, and is closed at the end of its block.

    `roots` are folders to follow in addition to those of the settings. `patience` is
    how many seconds to wait for an index that another process has open.
    """

    paths: Paths
    open_index: OpenIndex
    roots: Sequence[Path] = ()
    patience: float = _LOCK_SECONDS
    start_seconds: float = START_SECONDS
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _backend: _Backend | None = None
    _in_progress: int = 0

    async def ask(self, service: Service, body: Json) -> Json:
        """Return the answer of the daemon or of this process.

        Raises:
            ByokError: the same error in both cases.
        """
        deadline = time.monotonic() + self.patience
        _encode(body)  # so that this process refuses what the daemon would refuse
        while True:
            backend = None
            self._in_progress += 1
            try:
                backend = await self._open_backend(own_requests=1)
                return await backend.ask(service, body)
            except (DaemonGone, IndexInUse):
                await self._close(backend)
                if time.monotonic() > deadline:
                    raise
            finally:
                self._in_progress -= 1
            await asyncio.sleep(_POLL_SECONDS)

    async def daemon(self) -> Instance | None:
        """Return the daemon that answers; None if this process answers itself.

        Open the index if no daemon runs, or switch to a daemon that has started.

        Raises:
            ByokError: neither is possible.
        """
        return (await self._open_backend()).daemon

    async def follow(self, roots: Iterable[Path]) -> None:
        """Follow more folders while the daemon runs, or without one while this lives.

        Raises:
            ConfigError: one cannot be a workspace.
        """
        backend = await self._open_backend()
        self.roots = [*self.roots, *roots]
        if backend.daemon is None:
            await self._close(backend)
        else:
            await self._add_roots(backend.ask)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *reason: object) -> None:
        """Close the connection or the index."""
        await self._close(self._backend)

    async def _open_backend(self, *, own_requests: int = 0) -> _Backend:
        """Return the daemon or the index, opening it if needed.

        `own_requests` is how many of the requests in progress are the caller's.
        """
        async with self._lock:
            backend = self._backend
            is_idle = self._in_progress <= own_requests
            if backend and backend.daemon is None and is_idle:
                backend = await self._close_if_daemon_runs(backend)
            if backend is None:
                daemon = await asyncio.to_thread(
                    find_daemon, self.paths, self.start_seconds
                )
                backend = await self._connect(daemon)
            self._backend = backend
            return backend

    async def _close_if_daemon_runs(self, index: _Backend) -> _Backend | None:
        """Close the index of this process and return None if a daemon runs now."""
        if not self.paths.daemon.exists():
            return index
        if await asyncio.to_thread(find_daemon, self.paths, 0) is None:
            return index
        self._backend = None
        await index.stack.aclose()
        return None

    async def _connect(self, daemon: Instance | None) -> _Backend:
        async with AsyncExitStack() as stack:
            if daemon is None:
                opening = self.open_index(self._check_roots())
            else:
                opening = talking(daemon, self.paths)
            ask = await stack.enter_async_context(opening)
            if daemon is not None:
                await self._add_roots(ask)
            return _Backend(ask, daemon, stack.pop_all())

    @property
    def own_folders(self) -> "OwnFolders":
        """The folders of byok itself, which cannot be workspaces."""
        from byok.search.index.files.roots import OwnFolders

        return OwnFolders(self.paths.folders)

    def _check_roots(self) -> list[Path]:
        from byok.search.index.files.roots import check_root

        own = self.own_folders
        return [check_root(root, own) for root in self.roots]

    async def _add_roots(self, ask: Ask) -> None:
        for root in self.roots:
            await ask(Service.INDEX_ADD, {"root": str(root), "permanent": False})

    async def _close(self, backend: _Backend | None) -> None:
        """Close a backend, unless another one has already replaced it."""
        async with self._lock:
            if backend is not None and self._backend is backend:
                self._backend = None
                await backend.stack.aclose()
