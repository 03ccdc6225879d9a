"""A whole exchange over two pipes, its end, and what the tool answers."""

import asyncio
import json
import os
import subprocess
import sys
from typing import Any, ClassVar

import mcp_types
import pytest

from byok.cli.mcp_server import Descriptors, serve
from byok.core.chat import Json
from byok.core.errors import ByokError, IndexInUse
from byok.core.routing import Service
from byok.server.mcp.tools import MAX_CHARS, call_tool
from tests.fakes.patience import PATIENCE
from tests.fakes.program import ROOT

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


NAME = "codebase-retrieval"


class Asks:
    """Stands for what answers; `answer` may be an error."""

    def __init__(self, answer: str | Exception = "an answer") -> None:
        self.answer = answer
        self.asked: list[Json] = []

    async def refresh(self) -> None:
        if isinstance(self.answer, Exception):
            raise self.answer

    async def remembers(self) -> bool:
        return False

    async def find_roots(self, workspace: str) -> list[str]:
        return [workspace or "/only"]

    async def ask(self, service: Service, body: Json) -> Json:
        self.asked.append(body)
        if isinstance(self.answer, Exception):
            raise self.answer
        return {"formatted_retrieval": self.answer}

    async def search_text(self, question: str, error: IndexInUse) -> str:
        raise error


class Exchange:
    """A client that writes lines and reads the answers."""

    def __init__(self, asks: Asks | None = None) -> None:
        self._asks = asks or Asks()
        self.source, self.write_end = os.pipe()
        self.read_end, self.sink = os.pipe()
        self._kept = b""

    async def __aenter__(self) -> "Exchange":
        own = Descriptors(self.source, self.sink)
        self._serving = asyncio.ensure_future(serve(self._asks, own))
        # A server that breaks must not leave a reader that waits for ever.
        self._serving.add_done_callback(lambda _: os.close(self.sink))
        return self

    async def __aexit__(self, *_: object) -> None:
        os.close(self.write_end)
        async with asyncio.timeout(PATIENCE):
            await self._serving
        for end in (self.source, self.read_end):
            os.close(end)

    def say(self, **fields: Any) -> None:
        line = json.dumps({"jsonrpc": "2.0", **fields}) + "\n"
        os.write(self.write_end, line.encode())

    async def heard(self) -> Any:
        while b"\n" not in self._kept:
            async with asyncio.timeout(PATIENCE):
                more = await asyncio.to_thread(os.read, self.read_end, 65536)
            assert more, "the server has ended"
            self._kept += more
        line, _, self._kept = self._kept.partition(b"\n")
        return json.loads(line)

    async def asked(self, id: Any, method: str, **params: Any) -> Any:
        self.say(id=id, method=method, params=params)
        told = await self.heard()
        assert told["id"] == id
        return told

    async def hello(self) -> None:
        told = await self.asked(0, "initialize", **HELLO)
        assert told["result"]["serverInfo"]["name"] == "byok"
        self.say(method="notifications/initialized")


async def test_mcp_server_outlives_a_folder_that_it_cannot_write() -> None:
    refused = OSError(30, "Read-only file system", "/home")
    async with Exchange(Asks(refused)) as exchange:
        await exchange.hello()
        assert await exchange.asked(1, "tools/list")


@pytest.mark.case("B82")
async def test_mcp_server_answers_an_error_and_then_the_next_request() -> None:
    async with Exchange() as client:
        await client.hello()
        told = await client.asked(1, "nope/nope")
        assert told["error"]["code"] == -32601
        told = await client.asked(2, "tools/call", name=5)
        assert told["error"]["code"] == -32602
        told = await client.asked(
            3, "tools/call", name="codebase-retrieval", arguments=7
        )
        assert told["error"]["code"] == -32602
        client.say(id=4, method="ping")
        client.say(id=4, method="ping")
        assert {(await client.heard())["id"], (await client.heard())["id"]} == {4}
        assert "result" in await client.asked("5", "ping")


@pytest.mark.case("B83")
def test_mcp_server_ends_in_spite_of_what_hangs() -> None:
    script = (
        "import time\n"
        "from byok.search.index.types import ParseJob\n"
        "from byok.search.index.parse.worker_pool import Pool\n"
        "from byok.cli.mcp_server import end_soon\n"
        "pool = Pool(1, limit=60, target='tests.fakes.nasty_worker:nasty')\n"
        "outcomes = pool.prepare([ParseJob(0, 'a', content=b''),"
        " ParseJob(1, 'sleep')] * 32)\n"
        "end_soon(0.1)\n"
        "next(outcomes)\n"
    )
    # What hangs sleeps for ten minutes. It has the pipe too, which is read to its end.
    subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        cwd=ROOT,
        timeout=PATIENCE,
        check=True,
    )


def text_of(result: mcp_types.CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, mcp_types.TextContent)
    return content.text


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({}, "must be a text"),
        ({"information_request": " \n"}, "must be a text"),
        ({"information_request": 5}, "must be a text"),
        ({"information_request": "a", "path": "/etc/passwd"}, "'path'"),
        ({"information_request": "a", "k" * 10_000: 1}, "Unknown argument"),
        ({"information_request": "x" * 10**6}, f"{MAX_CHARS:,} characters"),
        ({"information_request": "a", "workspace": 5}, "workspace must be a text"),
    ],
    ids=lambda value: repr(value)[:50],
)
@pytest.mark.case("B84")
async def test_mcp_tool_wrong_arguments_are_a_result_that_says_so(
    arguments: dict[str, Any] | None, word: str
) -> None:
    asks = Asks("")
    result = await call_tool(asks, NAME, arguments)
    assert result.is_error
    assert word in text_of(result)
    assert len(text_of(result)) < 300
    assert asks.asked == []


@pytest.mark.parametrize("left_out", ["", None])
async def test_an_argument_that_a_model_left_empty_is_none(
    left_out: str | None,
) -> None:
    given = {"information_request": "a", "workspace": left_out}
    assert text_of(await call_tool(Asks("an answer"), NAME, given)) == "an answer"
    assert (await call_tool(Asks(""), NAME, {"information_request": left_out})).is_error


async def test_progress_only_grows_and_the_question_waits_for_the_index() -> None:
    class Building(Asks):
        shares: ClassVar = [10.0, 10.0, 5.0, 40.0]

        async def ask(self, service: Service, body: Json) -> Json:
            if service is not Service.INDEX_STATUS:
                return await super().ask(service, body)
            assert self.asked == []
            other = {"root": "/other", "phase": "indexing", "percentage": 0.0}
            if not self.shares:
                return {"workspaces": [other, {"root": "/only", "phase": "complete"}]}
            own = {"root": "/only", "percentage": self.shares.pop(0)}
            return {"workspaces": [other, {**own, "phase": "indexing"}]}

    reports: list[float] = []

    async def report(progress: float, total: float, message: str) -> None:
        reports.append(progress)

    result = await call_tool(Building(), NAME, {"information_request": "a"}, report)
    assert text_of(result) == "an answer"
    assert reports == [10.0, 40.0]


async def test_another_tool_is_unknown() -> None:
    result = await call_tool(Asks(""), "rm", {})
    assert result.is_error
    assert "Unknown tool 'rm'" in text_of(result)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ByokError("No.", hint="Do this."), "No. Do this."),
        (ValueError("secret"), "Internal error"),
        (OSError(30, "Read-only file system", "/a"), "/a: Read-only file system."),
    ],
)
async def test_mcp_tool_failure_is_a_result_too(error: Exception, words: str) -> None:
    result = await call_tool(Asks(error), NAME, {"information_request": "a"})
    assert result.is_error
    assert words in text_of(result)
    assert "secret" not in text_of(result)
