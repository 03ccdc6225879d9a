"""/mcp: code search over HTTP, for the SDK's client and for whatever else is sent."""

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent
from multidict import CIMultiDict

from byok.server.mcp import tools
from tests.fakes.daemon import Editor, running
from tests.fakes.patience import PATIENCE, until
from tests.fakes.project import FILES, Repository, make_project

CALLS = {
    "codebase-retrieval": {"information_request": "where is the oven heated"},
    "find-symbol": {"name": "total_price"},
    "commit-history": {"information_request": "why are prices rounded"},
    "index-status": {},
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    user = "from bakery.till import total_price\n\nprint(total_price([1]))\n"
    made = Repository(tmp_path / "bakery")
    for name, text in {**FILES, "bakery/use.py": user}.items():
        (made.root / name).parent.mkdir(exist_ok=True)
        (made.root / name).write_text(text)
    made.git("add", "bakery")
    made.git("commit", "-qm", "Round prices")
    return made.root


@asynccontextmanager
async def daemon(*roots: Path, is_complete: bool = True) -> AsyncIterator[Editor]:
    workspaces = {"context": {"workspaces": [str(root) for root in roots]}}
    async with running(workspaces, upstream="demo") as editor:

        async def are_indexed() -> bool:
            status = (await editor.post("/byok/index/status")).json
            return all(w["phase"] == "complete" for w in status["workspaces"])

        if is_complete:
            await until(are_indexed)
        yield editor


@asynccontextmanager
async def connected(
    editor: Editor, mode: Literal["auto", "legacy"] = "auto"
) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {editor.token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http:
        address = f"{editor.daemon.url}/mcp"
        transport = streamable_http_client(address, http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


async def call(client: Client, tool: str, **fields: Any) -> str:
    result = await client.call_tool(tool, fields)
    assert isinstance(result, CallToolResult)
    [content] = result.content
    assert isinstance(content, TextContent)
    return f"error: {content.text}" if result.is_error else content.text


async def test_each_revision_of_the_protocol_has_the_same_tools_and_answers(
    root: Path,
) -> None:
    seen = []
    async with daemon(root) as editor:
        for mode in ("auto", "legacy"):
            async with connected(editor, mode) as client:
                tools = (await client.list_tools()).tools
                assert [tool.name for tool in tools] == [*CALLS]
                *answers, status = [
                    await call(client, name, **CALLS[name]) for name in CALLS
                ]
                seen.append((client.instructions, tools, answers))
    assert seen[0] == seen[1]  # not the status: the index may still do its last work
    assert "find-symbol" in (seen[0][0] or "")
    code, symbol, commits = seen[0][2]
    assert "Path: bakery/oven.py" in code
    assert "total_price is defined in bakery/till.py and used in 1 file." in symbol
    assert symbol.count("Path: ") == 2
    assert "Path: bakery/use.py\n     1\tfrom bakery.till import" in symbol
    assert "Round prices" in commits
    assert status.startswith(f"{root}: complete, ")


async def test_an_agent_names_its_workspace_if_there_are_several(
    root: Path, tmp_path: Path
) -> None:
    other = make_project(tmp_path / "other", {"a.py": "def heat_oven(): pass\n"})
    async with daemon(root, other) as editor, connected(editor) as client:
        question = {"information_request": "heat the oven"}
        told = await call(client, "codebase-retrieval", **question)
        assert told.startswith("error: ")
        assert str(root) in told
        assert str(other) in told
        place = str(root / "bakery")
        told = await call(client, "codebase-retrieval", **question, workspace=place)
        assert "Path: bakery/oven.py" in told
        assert "heat_oven" not in told
        for strange in ("/", "bakery", "\0", f"{other}/../.."):
            told = await call(client, "find-symbol", name="a", workspace=strange)
            assert told.startswith("error: ")


async def test_progress_of_an_index_that_is_built_is_told_to_who_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "BUILD_SECONDS", PATIENCE)
    files = {f"f{n}.py": f"def heat_{n}(): pass\n" for n in range(60)}
    project = make_project(tmp_path / "big", files)
    reports: list[float] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        assert total == 100
        reports.append(progress)

    async with (
        daemon(project, is_complete=False) as editor,
        connected(editor) as client,
    ):
        result = await client.call_tool(
            "find-symbol", {"name": "heat_7"}, progress_callback=report
        )
    assert isinstance(result, CallToolResult)
    [content] = result.content
    assert isinstance(content, TextContent)
    assert content.text.startswith("heat_7 is defined in f7.py")
    assert reports


PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
NEW = {"MCP-Protocol-Version": "2026-07-28"}
CALL = {**PING, "method": "tools/call"}


STRANGE: tuple[tuple[Any, dict[str, str], int, int | None], ...] = (
    (PING, {}, 200, None),
    (PING, {"Accept": "text/event-stream"}, 200, None),
    ({**PING, "id": "a"}, {"MCP-Protocol-Version": "2025-06-18"}, 200, None),
    ({"jsonrpc": "2.0", "method": "notifications/initialized"}, {}, 202, None),
    ({"jsonrpc": "2.0", "id": 1, "result": {}}, {}, 202, None),
    ({"jsonrpc": "2.0", "method": "a"}, {"MCP-Protocol-Version": "1"}, 400, -32022),
    (PING, {"Accept": "image/png"}, 406, None),
    ("{", {}, 400, -32700),
    ([PING], {}, 422, -32600),
    ({}, {}, 400, -32600),
    ({**PING, "id": None}, {}, 400, -32600),
    ({**PING, "id": 1.5}, {}, 400, -32600),
    ({**PING, "id": True}, {}, 400, -32600),
    ({**PING, "id": 10**30}, {}, 400, -32600),
    ({**PING, "jsonrpc": "1.0"}, {}, 400, -32600),
    ({**PING, "method": 5, "error": {}}, {}, 400, -32600),
    ({**PING, "method": "nope/nope"}, {}, 200, -32601),
    ({**CALL, "params": {"name": 5}}, {}, 200, -32602),
    ({**CALL, "params": {"name": "a", "arguments": 7}}, {}, 200, -32602),
    (PING, {"MCP-Protocol-Version": "1999-01-01"}, 400, -32022),
    (PING, NEW, 400, -32602),
    (PING, {"Content-Type": "text/plain"}, 415, -32600),
    (PING, {"Origin": "https://example.org"}, 403, -32600),
    (PING, {"Origin": "null"}, 403, -32600),
    (PING, {"Host": "example.org"}, 421, -32600),
    (PING, {"Authorization": "Bearer wrong"}, 401, -32600),
    (PING, {"Authorization": ""}, 401, -32600),
)


@pytest.mark.case("B167")
async def test_a_strange_message_is_refused_in_the_protocols_own_form(
    editor: Editor,
) -> None:
    for body, headers, status, code in STRANGE:
        raw = (body if isinstance(body, str) else json.dumps(body)).encode()
        answer = await editor.post("/mcp", raw=raw, headers=headers)
        if "event-stream" in headers.get("Accept", ""):
            assert answer.raw.startswith(b"data: ")
        told = answer.raw.removeprefix(b"data: ")
        found = json.loads(told) if told else {}
        assert (answer.status, found.get("error", {}).get("code")) == (status, code), (
            body,
            headers,
        )
        if status == 200 and code is None:
            assert (found["id"], found["result"]) == (body["id"], {})
    address = f"{editor.daemon.url}/mcp"
    sent = {
        "Authorization": f"Bearer {editor.token}",
        "Content-Type": "application/json",
    }
    large = io.BytesIO(b" " * 5 * 2**20)
    async with editor.http.post(
        address, data=large, headers=sent, expect100=True
    ) as response:
        assert response.status == 413
    for method in ("GET", "DELETE", "PUT"):  # no sessions, no stream without a question
        async with editor.http.request(method, address, headers=sent) as response:
            assert (response.status, response.headers["Allow"]) == (405, "POST")
            assert "Connection" not in response.headers  # the next message is under way
    async with editor.http.put(address, data=b"{}", headers=sent) as response:
        assert response.headers["Connection"] == "close"


async def test_headers_must_say_what_the_message_says(editor: Editor) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {**PING, "method": "tools/list", "params": {"_meta": meta}}
    for methods, status in ((["list"], 200), (["call"], 400), (["list"] * 2, 400)):
        headers = CIMultiDict(NEW)
        for method in methods:
            headers.add("Mcp-Method", f"tools/{method}")
        headers["Authorization"] = f"Bearer {editor.token}"
        async with editor.http.post(
            f"{editor.daemon.url}/mcp", json=body, headers=headers
        ) as response:
            assert response.status == status
