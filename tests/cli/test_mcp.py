"""byok mcp, with the SDK's own client and with whatever else may be sent."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent

from byok.cli.daemon_client import find_daemon
from byok.core.daemon.instance import is_held
from byok.core.platform.paths import find_paths
from byok.server.run import Daemon
from tests.fakes.daemon import daemon_thread, token_for
from tests.fakes.patience import PATIENCE, START
from tests.fakes.program import ROOT, children_of
from tests.fakes.project import make_project

pytestmark = pytest.mark.slow
QUESTION = "where is the oven heated before baking"
TOOL = "codebase-retrieval"
HELLO = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":'
    '"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n'
)


@asynccontextmanager
async def connected(*arguments: str | Path, cwd: Path = ROOT) -> AsyncIterator[Client]:
    """Start `byok mcp` as a client's settings do."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "byok", "mcp", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=cwd,
    )
    async with asyncio.timeout(2 * START), Client(stdio_client(server)) as client:
        yield client


async def asked(client: Client) -> CallToolResult:
    result = await client.call_tool(TOOL, {"information_request": QUESTION})
    assert isinstance(result, CallToolResult)
    return result


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


async def over_http(daemon: Daemon) -> str:
    params = {"name": TOOL, "arguments": {"information_request": QUESTION}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    told = json.loads(await post(daemon, "/mcp", message))
    return str(told["result"]["content"][0]["text"])


async def post(daemon: Daemon, path: str, body: object = None) -> bytes:
    async with (
        aiohttp.ClientSession() as http,
        http.post(
            daemon.url + path,
            json=body or {},
            headers={"Authorization": f"Bearer {token_for(path, daemon)}"},
        ) as response,
    ):
        return await response.read()


async def complete(daemon: Daemon) -> None:
    """Wait until the daemon has indexed everything."""
    async with asyncio.timeout(PATIENCE):
        while True:
            spaces = json.loads(await post(daemon, "/byok/index/status"))["workspaces"]
            if spaces and all(w["phase"] == "complete" for w in spaces):
                return
            await asyncio.sleep(0.05)


async def test_it_indexes_itself_and_answers_as_the_daemon_does_while_one_runs(
    project: Path,
) -> None:
    async with connected("-w", project) as client:
        first = await asked(client)
        assert not first.is_error
        assert "Path: bakery/oven.py" in text_of(first)
        assert "not-for-anybody" not in text_of(first)
        with daemon_thread() as daemon:
            assert "bakery/oven.py" in text_of(await asked(client))
            await complete(daemon)
            assert text_of(await asked(client)) == await over_http(daemon)
        assert "bakery/oven.py" in text_of(await asked(client))


@pytest.mark.case("F32")
async def test_a_second_process_starts_the_daemon_if_it_may_and_both_are_answered(
    clean_environment: Path, project: Path, tmp_path: Path
) -> None:
    other = make_project(tmp_path / "other")
    (clean_environment / "config.toml").parent.mkdir(exist_ok=True)
    (clean_environment / "config.toml").write_text(
        '[server]\nport = 0\n[upstreams.demo]\ntype = "demo"\n'
    )
    try:
        async with connected("-w", project) as one:
            assert not (await asked(one)).is_error
            async with connected("-w", project, "--no-daemon") as alone:
                answer = text_of(await asked(alone))
            assert "Path: bakery/oven.py" in answer
            assert "plain text search" in answer
            assert "not-for-anybody" not in answer
            assert not is_held(find_paths())
            async with connected(cwd=other) as two:
                first = await asked(two)
                assert not first.is_error
                assert "bakery/oven.py" in text_of(first)
                async with asyncio.timeout(START):
                    while "plain text search" in text_of(await asked(two)):
                        await asyncio.sleep(0.1)
                assert "bakery/oven.py" in text_of(await asked(one))
        assert find_daemon(find_paths()) is not None  # for whoever comes next
    finally:
        end_daemon()


def end_daemon() -> None:
    """End the daemon of this test's home, whoever started it."""
    daemon = find_daemon(find_paths())
    if daemon is not None:
        os.kill(daemon.pid, signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE
        while is_held(find_paths()):
            assert time.monotonic() < deadline
            time.sleep(0.05)


@contextmanager
def started(*arguments: str | Path) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "byok", "mcp", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def greet(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(HELLO.encode())
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == 1


@pytest.mark.parametrize("ending", ["input within a line", "SIGTERM"])
@pytest.mark.case("B83")
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc")
def test_mcp_ends_with_its_client_and_leaves_no_process_behind(
    project: Path, ending: str
) -> None:
    for number in range(500):
        (project / f"f{number}.py").write_text(f"def function_{number}(): pass\n" * 9)
    with started("-w", project) as process:
        greet(process)
        deadline = time.monotonic() + PATIENCE
        while not (children := children_of(process.pid)):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert process.stdin is not None
        if ending == "SIGTERM":
            process.send_signal(signal.SIGTERM)
        else:
            process.stdin.write(b'{"jsonrpc":' if "within" in ending else b"")
            process.stdin.close()
            process.stdin = None
        assert process.wait(PATIENCE) == 0
        deadline = time.monotonic() + PATIENCE  # what a pipe's end tells to go
        while left := [pid for pid in children if _is_alive(pid)]:
            assert time.monotonic() < deadline, left
            time.sleep(0.05)


def _is_alive(pid: int) -> bool:
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        )
    except OSError:
        return False
