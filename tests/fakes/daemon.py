"""A daemon inside the test, started through server/run.py as the real one is.

It serves in the test's own event loop, or in a thread for commands that ask one.
"""

import asyncio
import contextlib
import http.client
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import aiohttp
from msgspec.structs import replace

from byok.core.daemon.challenge import derive_owner_token
from byok.core.daemon.instance import only_instance, write_record
from byok.core.daemon.token import read_token
from byok.core.platform.paths import find_paths
from byok.core.record import Head, Hop, Observer, RequestRecord, Tap
from byok.core.redact import Redactor
from byok.server.control import Source
from byok.server.http.deadlines import Timing
from byok.server.run import Daemon, DaemonParts, listening
from byok.settings import check_settings, load_settings
from byok.settings.keys import KeyLadder
from byok.settings.keys.keyring_store import KeyringStore
from byok.settings.keys.vault import Vault
from byok.upstream.base import Upstream
from byok.upstream.router import Router
from byok.wiring.services import Services, open_services
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import FakeUpstream


def owner_token(daemon: Daemon) -> str:
    secret = read_token(find_paths().owner_secret)
    return derive_owner_token(secret, daemon.port, daemon.instance)


def token_for(path: str, daemon: Daemon) -> str:
    """Return the token for a path: the owner's below /byok/, else the clients'."""
    if path.startswith("/byok/"):
        return owner_token(daemon)
    return read_token(find_paths().token)


PORT = {"server": {"port": 0}}
# It ends quickly, and has patience with clients that a busy machine holds up.
QUICK = Timing(
    grace=0.3,
    last_words=0.4,
    head=PATIENCE,
    body_gap=PATIENCE,
    challenge=PATIENCE,
    patience=PATIENCE,
)


class Watcher:
    """Observer that keeps the records, and what passes on each hop."""

    def __init__(self) -> None:
        self.open: list[RequestRecord] = []
        self.finished: list[RequestRecord] = []
        self.bytes: dict[Hop, bytes] = defaultdict(bytes)

    def request_started(self, record: RequestRecord, /) -> Tap:
        self.open.append(record)
        return self._tap

    def request_finished(self, record: RequestRecord, /) -> None:
        self.open.remove(record)
        self.finished.append(record)

    def _tap(self, hop: Hop, piece: bytes | Head, /) -> None:
        self.bytes[hop] += b"" if isinstance(piece, Head) else piece


@dataclass
class Answer:
    """One HTTP answer: status, headers, raw bytes."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The objects of an NDJSON stream; every line must be one."""
        assert not self.raw or self.raw.endswith(b"\n")
        return [json.loads(line) for line in self.raw.split(b"\n") if line]

    @property
    def text(self) -> str:
        return "".join(line["text"] for line in self.lines)

    @property
    def nodes(self) -> list[dict[str, Any]]:
        return [node for line in self.lines for node in line["nodes"]]

    @property
    def tool_uses(self) -> list[dict[str, Any]]:
        return [node["tool_use"] for node in self.nodes if node["type"] == 5]

    @property
    def last(self) -> dict[str, Any]:
        return self.lines[-1]


@dataclass
class Editor:
    """A client of the daemon."""

    daemon: Daemon
    services: Services
    token: str
    http: aiohttp.ClientSession

    @property
    def owner_token(self) -> str:
        return owner_token(self.daemon)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        body: Any = None,
        *,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a POST as a client, and give the answer once its head is there.

        What lies below /byok/ is asked as byok's own commands ask it.
        """
        own = path.startswith("/byok/")
        sent = {
            "Authorization": f"Bearer {self.owner_token if own else self.token}",
            "Content-Type": "application/json",
            **(headers or {}),
        }
        data = raw if raw is not None else json.dumps(body or {}).encode()
        async with self.http.post(
            self.daemon.url + path, data=data, headers=sent
        ) as response:
            yield response

    async def post(self, path: str, body: Any = None, **how: Any) -> Answer:
        """Send a POST as `stream` does, and read the whole answer."""
        async with self.stream(path, body, **how) as response:
            return Answer(response.status, response.headers, await response.read())

    async def chat(self, message: str = "Go on.", **fields: Any) -> Answer:
        """Ask through /chat-stream, as an editor that can digest everything."""
        flags = {"support_parallel_tool_use": True, "support_tool_use_start": True}
        body = {"message": message, "feature_detection_flags": flags, **fields}
        return await self.post("/chat-stream", body)


@asynccontextmanager
async def running(
    settings: Mapping[str, Any] | None = None,
    *,
    upstream: str = "",
    timing: Timing = QUICK,
    environ: Mapping[str, str] | None = None,
    observers: Sequence[Observer] = (),
    clock: Callable[[], float] = time.time,
) -> AsyncIterator[Editor]:
    """Start a daemon on a free port and give a client of it.

    `settings` are sections as in config.toml; `environ` is where keys are looked for;
    `clock` is for the journal and the caps.
    """
    parts = parts_of(settings, upstream=upstream, environ=environ)
    serving = listening(parts, timing, observers=observers, clock=clock)
    async with _asking(serving) as editor:
        yield editor


@asynccontextmanager
async def _asking(
    serving: AbstractAsyncContextManager[Daemon],
) -> AsyncIterator[Editor]:
    """Give a client of the daemon that this starts."""
    async with serving as daemon, aiohttp.ClientSession() as http:
        token = read_token(find_paths().token)
        yield Editor(daemon, daemon.services, token, http)


def parts_of(
    settings: Mapping[str, Any] | None = None,
    *,
    upstream: str = "",
    environ: Mapping[str, str] | None = None,
    keyring: KeyringStore | None = None,
    roots: Sequence[Path] = (),
    path: Path | None = None,
) -> DaemonParts:
    """Return what a daemon on a free port is made of."""
    paths = find_paths()
    loaded = load_settings(path or paths.config, {**PORT, **(settings or {})})
    redactor = Redactor()

    def services() -> AbstractAsyncContextManager[Services]:
        vault = Vault(paths.vault, environ or {}, key_file=paths.vault_key)
        ladder = KeyLadder(environ=environ or {}, keyring=keyring, vault=vault)
        return open_services(
            loaded,
            paths,
            upstream=upstream,
            ladder=ladder,
            redactor=redactor,
            roots=roots,
        )

    return DaemonParts(loaded, paths, redactor, services)


def settings_for(url: str, **fields: Any) -> dict[str, Any]:
    """Settings with one upstream called fake, for which nobody waits."""
    section = {"base_url": url, "timeout": 60, "patience": 0, **fields}
    return {"upstreams": {"fake": section}}


async def check_alive(editor: Editor, fake: FakeUpstream) -> None:
    """A chat still ends as it should, and nothing went up before it."""
    reply = await editor.chat("Still there?")
    assert (reply.text, reply.last["stop_reason"]) == ("Hi.", 1)
    assert len(fake.requests) == 1


@asynccontextmanager
async def daemon_with(
    upstream: Upstream, timing: Timing = QUICK
) -> AsyncIterator[Editor]:
    """Start a daemon that asks this upstream, whatever model is named."""
    parts = parts_of(upstream="demo")

    @asynccontextmanager
    async def services_with() -> AsyncIterator[Services]:
        async with parts.open_services() as services:
            router = Router({"demo": upstream}, services.catalog)
            yield replace(services, router=router)

    serving = listening(parts._replace(open_services=services_with), timing)
    async with _asking(serving) as editor:
        yield editor


def write_settings(text: str | bytes, path: Path | None = None) -> Path:
    """Write the settings file, for its owner alone."""
    path = path or find_paths().config
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(0o600)
    return path


@asynccontextmanager
async def running_on_file(
    path: Path | None = None,
    *,
    keyring: KeyringStore | None = None,
    options: Mapping[str, str] | None = None,
) -> AsyncIterator[Editor]:
    """Start a daemon that takes its settings from a file, as `byok serve` does.

    Nothing is watched.
    """
    file = path or find_paths().config
    parts = parts_of(keyring=keyring, path=file)
    source = Source(
        file, lambda: load_settings(file, PORT), check_settings, PORT, options or {}
    )
    async with _asking(listening(parts, QUICK, source)) as editor:
        yield editor


@contextmanager
def daemon_thread(
    *roots: Path,
    upstream: str = "demo",
    environ: Mapping[str, str] | None = None,
) -> Iterator[Daemon]:
    """Hold the lock, be recorded, serve until the block ends or a command ends it.

    It takes settings as `byok serve` does; `environ` is where it looks for keys.
    """
    paths = find_paths()
    parts = parts_of(upstream=upstream, environ=environ, roots=roots)
    source = Source(
        paths.config,
        lambda: load_settings(paths.config, PORT),
        lambda new: check_settings(new, upstream),
    )
    ready = SimpleQueue[tuple[Daemon, asyncio.AbstractEventLoop] | None]()

    async def serve() -> None:
        async with listening(parts, QUICK, source) as daemon:
            write_record(paths, daemon.port, daemon.instance)
            following = asyncio.ensure_future(daemon.control.follow(QUICK.look))
            ready.put((daemon, asyncio.get_running_loop()))
            await daemon.control.ending.wait()
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following
            await daemon.stop()

    def run() -> None:
        try:
            with only_instance(paths):
                asyncio.run(serve())
        finally:
            ready.put(None)

    with ThreadPoolExecutor(1) as pool:
        served = pool.submit(run)
        started = ready.get()
        if started is None:
            served.result()
            raise AssertionError("it ended before it was ready")
        daemon, loop = started
        try:
            yield daemon
        finally:
            with contextlib.suppress(RuntimeError):  # it has ended already
                loop.call_soon_threadsafe(daemon.control.ending.set)
            served.result()


def ask_chat(daemon: Daemon, text: str) -> str:
    """Ask for a chat; return the id of the request."""
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port)
    headers = {
        "Authorization": f"Bearer {read_token(find_paths().token)}",
        "Content-Type": "application/json",
    }
    body = json.dumps({"message": text})
    connection.request("POST", "/chat-stream?key=hidden-value", body, headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.headers["X-Request-Id"]
