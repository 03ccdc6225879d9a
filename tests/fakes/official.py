"""The official service: takes what a test expects, exactly, and refuses the rest."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import pytest
from aiohttp import web

from byok.server.http.deadlines import OfficialTiming, Timing
from tests.fakes.daemon import QUICK, Editor, running
from tests.fakes.upstream import FakeUpstream, Script, play

TOKEN = "official/token+0123456789-ABC_def.ghi="
ENVIRON = {"BYOK_KEY_OFFICIAL": TOKEN}
KEY = "sk-of-the-upstream-0123456789"
KEYS = {**ENVIRON, "K": KEY}
CHAT = {"chat": "official"}
NDJSON = {"Content-Type": "application/x-ndjson"}
JSON = {"Content-Type": "application/json"}
HASTY = Timing(grace=0.3, last_words=0.4, official=OfficialTiming(1.0, 1.0, 1.0))
# Whatever else comes along is refused: what is not needed must not leave the machine.
HEADERS = {
    *("host", "authorization", "accept", "accept-encoding", "user-agent"),
    *("content-type", "content-length", "x-mode", "x-api-version"),
    *("x-request-id", "x-request-session-id", "conversation-id"),
}


def whole(body: bytes = b"{}", status: int = 200, **headers: str) -> Script:
    """Script an answer in one piece."""
    return Script([body], status, {**JSON, **headers})


@dataclass
class Expected:
    """What may come to a path, and what is answered; `silent`: nothing, for ever."""

    body: bytes = b"{}"
    script: Script = field(default_factory=whole)
    silent: bool = False


class FakeOfficial:
    """Listens on a free loopback port, at `base` (a path). Leaving checks `refused`."""

    def __init__(self, base: str = "", token: str = TOKEN) -> None:
        self.base = base
        self.token = token
        self.expected: dict[str, Expected] = {}
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []  # their names in lower case
        self.raw: list[bytes] = []  # everything that came: heads and bodies
        self.refused: list[str] = []
        self.reached = asyncio.Event()
        self.hung_up = asyncio.Event()
        self._port = 0
        self._held = socket.socket()  # has the port while nothing listens
        self._runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        """The base URL for the settings."""
        return f"http://127.0.0.1:{self._port}{self.base}"

    def expect(
        self,
        path: str,
        body: bytes = b"{}",
        script: Script | None = None,
        *,
        silent: bool = False,
    ) -> None:
        """Say what may come to a path, as often as it likes, and what is answered."""
        self.expected[path] = Expected(body, script or whole(), silent)

    def settings(self, **groups: str) -> dict[str, Any]:
        """Return the settings that send these groups here."""
        return {"routing": {"official": {"base_url": self.url, **groups}}}

    async def up(self) -> None:
        """Listen, on the same port as before."""
        self._held.close()
        self._runner = web.ServerRunner(
            web.Server(self._answer, handler_cancellation=True, access_log=None),
            shutdown_timeout=0.1,
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]

    async def down(self) -> None:
        """Close every connection and listen no more; nobody else gets the port."""
        assert self._runner is not None
        await self._runner.cleanup()
        self._held = socket.socket()
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.bind(("127.0.0.1", self._port))

    async def __aenter__(self) -> Self:
        await self.up()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()
        self._held.close()
        assert error is not None or self.refused == []

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.content.read()  # without the limit of read()
        head = [(k.decode(), v.decode("latin-1")) for k, v in request.raw_headers]
        self.raw.append(f"{request.raw_path} {head}".encode() + body)
        path = request.raw_path.removeprefix(self.base)
        expected = self.expected.get(path)
        reason = self._strange(request, head)
        if expected is None:
            reason = f"the path {request.raw_path}"
        elif body != expected.body:
            reason = f"the body {body!r}"
        if reason or expected is None:
            self.refused.append(reason)
            return web.Response(status=418)
        self.paths.append(path)
        self.headers.append({name.lower(): value for name, value in head})
        self.reached.set()
        try:
            while expected.silent:
                await asyncio.sleep(0.02)
            return await play(request, expected.script)
        except (ConnectionResetError, asyncio.CancelledError):
            self.hung_up.set()
            raise

    def _strange(self, request: web.BaseRequest, head: list[tuple[str, str]]) -> str:
        """Say what is wrong with a head, "" for nothing."""
        found: Mapping[str, str] = {name.lower(): value for name, value in head}
        if len(found) < len(head):
            return "a header that came twice"
        if found.keys() - HEADERS:
            return f"the headers {sorted(found.keys() - HEADERS)}"
        if request.method != "POST" or not request.raw_path.startswith(self.base):
            return f"{request.method} {request.raw_path}"
        if found["host"] != f"127.0.0.1:{self._port}":
            return f"the host {found['host']}"
        if found.get("authorization") != f"Bearer {self.token}":
            return "another token"
        return ""


@asynccontextmanager
async def between(
    official: FakeOfficial,
    fake: FakeUpstream,
    groups: Mapping[str, str],
    *,
    environ: Mapping[str, str] = KEYS,
    timing: Timing = QUICK,
) -> AsyncIterator[Editor]:
    """A daemon between an editor, an upstream with a key, and the official service."""
    upstream = {"base_url": fake.url, "model": "m", "api_key_env": "K"}
    settings = {"upstreams": {"fake": upstream}, **official.settings(**groups)}
    async with running(settings, environ=environ, timing=timing) as editor:
        yield editor


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings about the service."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.WARNING and "official" in record.getMessage()
    ]
