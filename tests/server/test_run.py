"""The daemon's life: both addresses, an orderly end."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from byok.core.errors import CannotStart, ConfigError
from byok.server.http.deadlines import Timing
from byok.server.run import listening
from byok.wiring.services import Services
from tests.fakes.daemon import Editor, parts_of, running, settings_for
from tests.fakes.patience import PATIENCE
from tests.fakes.ports import free_port
from tests.fakes.program import ROOT
from tests.fakes.raw import ask, connected, filled, request
from tests.fakes.upstream import FakeUpstream, Script, delta

PATIENT = Timing(grace=5, last_words=0.4)
HEALTH = request(method=b"GET", target=b"/health", body=b"")


@pytest.mark.case("F44")
async def test_daemon_answers_on_ipv4_and_on_ipv6(editor: Editor) -> None:
    port = editor.daemon.port
    assert editor.daemon.url == f"http://127.0.0.1:{port}"
    for host in ("127.0.0.1", "::1"):
        async with connected(port, host) as connection:
            await connection.send(filled(request(), port, editor.token))
            assert (await connection.answer()).status == 200


@pytest.mark.case("F39")
async def test_shutdown_lets_a_short_stream_end(
    fake: FakeUpstream,
) -> None:
    fake.play(Script([delta(content="One"), 0.1, delta("stop", content=" two.")]))
    async with running(settings_for(fake.url), timing=PATIENT) as editor:
        asking = asyncio.ensure_future(editor.chat())
        await asyncio.wait_for(fake.reached.wait(), PATIENCE)
        await asyncio.wait_for(editor.daemon.stop(), PATIENCE)
        reply = await asking
    assert (reply.text, reply.last["stop_reason"]) == ("One two.", 1)
    assert "error" not in reply.last


@pytest.mark.parametrize("path", ["/chat-stream", "/chat"])
async def test_shutdown_is_reported_in_a_cut_answer(
    fake: FakeUpstream, path: str
) -> None:
    fake.play(Script([], end="hang"))
    async with running(settings_for(fake.url)) as editor:
        asking = asyncio.ensure_future(editor.post(path, {"message": "x"}))
        await asyncio.wait_for(fake.reached.wait(), PATIENCE)
        await editor.daemon.stop()
        reply = await asyncio.wait_for(asking, PATIENCE)
    if path == "/chat":
        assert reply.status == 503
        assert reply.json["error"]["code"] == "shutting_down"
    else:
        assert reply.last["error"]["code"] == "shutting_down"
        assert reply.text.startswith("\n[byok] ")


@pytest.mark.case("F39")
async def test_shutdown_refuses_waiting_requests(
    fake: FakeUpstream,
) -> None:
    fake.play(Script([], end="hang"))
    limits = {"streams": 1, "waiting": 1}
    async with running({**settings_for(fake.url), "limits": limits}) as editor:
        first = asyncio.ensure_future(editor.chat())
        await asyncio.wait_for(fake.reached.wait(), PATIENCE)
        port = editor.daemon.port
        async with connected(port) as second:
            chat = request(target=b"/chat-stream", body=b'{"message":"x"}')
            await second.send(filled(chat, port, editor.token))
            await editor.daemon.stop()
            refused = await second.answer()
        await first
    assert (refused.status, refused.code) == (503, "shutting_down")
    assert len(fake.requests) == 1


async def test_start_reports_a_taken_port_before_anything_is_served() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = {"server": {"port": other.getsockname()[1]}}
        with pytest.raises(CannotStart):
            async with running(taken, upstream="demo"):
                pass


LATE = (
    "httpx",
    "byok.wiring.services",
    "byok.protocols.augment",
    "byok.upstream",
    "byok.upstream.toolcalls.r",
    "byok.features.metrics.page",
    "byok.features.otel.spans",
    "opentelemetry",
)
# Nor is what many daemons never need: the page, ignore files, other APIs, agents,
# aiohttp's routes and files.
LATER = (
    "aiohttp.web_app",
    "aiohttp.web_fileresponse",
    "byok.server.dashboard.api",
    "byok.features.journal.usage",
    "byok.protocols.v1.messages",
    "byok.dialects.gemini",
    "byok.dialects.anthropic",
    "pathspec",
    "mcp",
)
# What takes seconds on a busy machine, and so comes after the first line of the start.
SERVER = ("byok.server", "byok.settings.loading", "aiohttp", "pydantic")
IMPORTS = """
import sys, byok.cli.serve
print(*sys.modules)
import byok.server.control, byok.server.run, byok.settings.loading
print(*sys.modules)
import byok.server.compose
print(*sys.modules)
"""


@pytest.mark.slow
def test_start_imports_only_what_is_needed_before_its_first_line_and_the_port() -> None:
    command = [sys.executable, "-c", IMPORTS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    first, before, composed = (line.split() for line in done.stdout.splitlines())
    assert [name for name in first if name.startswith(SERVER)] == []
    assert [name for name in before if name.startswith(LATE)] == []
    assert [name for name in composed if name.startswith(LATER)] == []


class Opening:
    """A daemon whose services are not opened before the test says so."""

    def __init__(self) -> None:
        self.port = free_port()
        self.begun = asyncio.Event()
        self.go_on: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.stop = asyncio.Event()
        server = {"server": {"port": self.port}}
        self._parts = parts_of(server, upstream="demo")

    async def run(self) -> None:
        parts = self._parts._replace(open_services=self._services)
        async with listening(parts, PATIENT):
            await self.stop.wait()

    @asynccontextmanager
    async def _services(self) -> AsyncIterator[Services]:
        self.begun.set()
        await self.go_on
        async with self._parts.open_services() as services:
            yield services

    def filled(self, data: bytes) -> bytes:
        return filled(data, self.port, self._parts.paths.token.read_text().strip())


async def test_start_answers_health_while_services_are_opened() -> None:
    opening = Opening()
    serving = asyncio.ensure_future(opening.run())
    await asyncio.wait_for(opening.begun.wait(), PATIENCE)
    async with connected(opening.port) as client:
        await client.send(opening.filled(request(body=b'{"message":"x"}')))
        health = await ask(opening.port, opening.filled(HEALTH))
        assert (health.status, health.json) == (200, {"status": "ok"})
        opening.go_on.set_result(None)
        assert (await client.answer()).json["stop_reason"] == 1
    opening.stop.set()
    await asyncio.wait_for(serving, PATIENCE)


async def test_start_failure_of_services_ends_the_daemon_and_frees_the_port() -> None:
    opening = Opening()
    serving = asyncio.ensure_future(opening.run())
    await asyncio.wait_for(opening.begun.wait(), PATIENCE)
    async with connected(opening.port) as client:
        await client.send(opening.filled(request()))
        health = await ask(opening.port, opening.filled(HEALTH))
        assert health.status == 200
        opening.go_on.set_exception(ConfigError("There is no such upstream."))
        refused = await client.answer()
    assert (refused.status, refused.code) == (503, "shutting_down")
    with pytest.raises(ConfigError, match="no such upstream"):
        await asyncio.wait_for(serving, PATIENCE)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", opening.port)
