"""A daemon inside the test, started through server/run.py as the real one is."""

import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import aiohttp

from byok.core.daemon.token import read_token
from byok.core.observer import Observer
from byok.core.platform.paths import Paths, find_paths
from byok.core.record import Hop, RequestRecord, Tap
from byok.core.redact import Redactor
from byok.server.http.deadlines import Timing
from byok.server.run import Daemon, OpenServices, listening
from byok.settings import Settings, load_settings
from byok.settings.keys import KeyLadder
from byok.upstream.base import Upstream
from byok.upstream.router import Router
from byok.wiring.services import Services, open_services
from tests.fakes.owner import owner_token
from tests.fakes.upstream import FakeUpstream

QUICK = Timing(beat=20, head_after=5, grace=0.3, last_words=0.4)


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

    def _tap(self, hop: Hop, data: bytes, /) -> None:
        self.bytes[hop] += data


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
        """What byok's commands send to this daemon."""
        return owner_token(self.daemon)

    async def post(
        self,
        path: str,
        body: Any = None,
        *,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a POST as a client, and read the whole answer.

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
    async with (
        listening(*parts, timing, observers=observers, clock=clock) as daemon,
        aiohttp.ClientSession() as http,
    ):
        token = read_token(find_paths().token)
        yield Editor(daemon, daemon.services, token, http)


def parts_of(
    settings: Mapping[str, Any] | None = None,
    *,
    upstream: str = "",
    environ: Mapping[str, str] | None = None,
) -> tuple[Settings, Paths, Redactor, OpenServices]:
    """Return what a daemon on a free port is made of."""
    paths = find_paths()
    loaded = load_settings(paths.config, {"server": {"port": 0}, **(settings or {})})
    redactor = Redactor()

    def services() -> AbstractAsyncContextManager[Services]:
        ladder = KeyLadder(environ=environ or {})
        return open_services(
            loaded, paths, upstream=upstream, ladder=ladder, redactor=redactor
        )

    return loaded, paths, redactor, services


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
    settings, paths, redactor, open_services = parts_of(upstream="demo")

    @asynccontextmanager
    async def services_with() -> AsyncIterator[Services]:
        async with open_services() as services:
            router = Router({"demo": upstream}, services.catalog)
            yield replace(services, router=router)

    async with (
        listening(settings, paths, redactor, services_with, timing) as daemon,
        aiohttp.ClientSession() as http,
    ):
        yield Editor(daemon, daemon.services, read_token(paths.token), http)
