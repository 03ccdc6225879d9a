"""Find this user's running daemon, verify it by challenge, and ask it over HTTP."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import orjson

from byok.core.chat import Json
from byok.core.daemon.challenge import derive_owner_token, verify_daemon
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
from byok.core.platform.paths import Paths, find_paths
from byok.core.routing import OWN_PATHS

if TYPE_CHECKING:
    import aiohttp

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
async def talking(daemon: Instance, paths: Paths) -> AsyncIterator["DaemonDoor"]:
    """Give a connection to a daemon that has passed the challenge.

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
        f"http://127.0.0.1:{daemon.port}",
        headers={
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
        },
        timeout=timeout,
        trust_env=False,
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:
        yield DaemonDoor(session)


class DaemonDoor:
    """The running daemon, reached over HTTP."""

    def __init__(self, session: "aiohttp.ClientSession") -> None:
        self._session = session

    async def answer(self, service: str, body: Json) -> Json:
        """Send a request to a Service or a feature, and return the answer.

        Raises:
            NotReady: the daemon does not answer, is gone, or has another version.
            ByokError: as raised by the daemon.
        """
        return await self._post(OWN_PATHS.get(service, f"/byok/{service}"), body)

    async def _post(self, path: str, body: Json) -> Json:
        import aiohttp

        try:
            async with self._session.post(
                path, data=orjson.dumps(body), allow_redirects=False
            ) as response:
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
        str(error.get("message", "")),
        code=code,
        hint=str(error.get("hint", "")),
        status=status,
        retryable=error.get("retryable") is True,
    )


def ask_daemon(service: str, body: Json | None = None) -> Json | None:
    """Return what a Service or a feature answers; None if no daemon is running.

    Raises:
        ByokError: a daemon runs and does not answer, or its own error.
    """
    paths = find_paths()
    daemon = find_daemon(paths)
    if daemon is None:
        refuse_if_silent(paths)
        return None

    async def ask() -> Json:
        async with talking(daemon, paths) as door:
            return await door.answer(service, body or {})

    return asyncio.run(ask())


def refuse_if_silent(paths: Paths) -> None:
    """Do nothing if no daemon runs.

    Raises:
        NotReady: a process holds the daemon's lock but fails the challenge.
    """
    if is_held(paths):
        raise NotReady(
            "byok is starting, or hangs: the daemon does not answer.",
            hint=f"Try again. If it stays so, end the process whose pid is in "
            f"{paths.daemon}.",
        )
