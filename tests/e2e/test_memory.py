"""What was said in a conversation last week is found in a new one, until forgotten."""

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.clients import find_code, until_complete
from tests.fakes.clock import Clock
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.engines import project
from tests.fakes.upstream import FakeUpstream, answer

FACT = "Children under six travel free: parse_fare returns 0 for them."
QUESTION = "What do children under six pay?"
DAY = 86_400
ON = {"memory": {"on": True}}
MCP = {"jsonrpc": "2.0", "id": 1}


async def chat(editor: Editor, message: str, id: object, root: Path) -> None:
    folders = [{"folder_root": str(root), "repository_root": str(root)}]
    state = {"workspace_folders": folders}
    nodes = [
        {"id": 0, "type": 0, "text_node": {"content": message}},
        {"id": 1, "type": 4, "ide_state_node": state},
    ]
    body = {"nodes": nodes, "conversation_id": id}
    headers = {"X-Request-Session-Id": root.name}
    assert (await editor.post("/chat-stream", body, headers=headers)).status == 200


async def ask(editor: Editor, window: str, **fields: Any) -> str:
    asked = {"enable_conversation_retrieval": True, **fields}
    return await find_code(editor, QUESTION, window=window, **asked)


async def call(editor: Editor, method: str, **params: Any) -> Any:
    reply = await editor.post("/mcp", {**MCP, "method": method, "params": params})
    return reply.json["result"]


async def recall(editor: Editor, root: Path) -> str:
    arguments = {"information_request": QUESTION, "workspace": str(root)}
    name = "conversation-memory"
    result = await call(editor, "tools/call", name=name, arguments=arguments)
    return str(result["content"][0]["text"])


async def test_a_fact_of_last_week_is_found_in_a_new_conversation(
    tmp_path: Path,
) -> None:
    clock = Clock(20_000.5 * DAY)  # at noon, which is one day in all zones of the tests
    shop = project(
        tmp_path / "shop", fares__py="def fare(): pass  # for children\n" * 99
    )
    bank = project(tmp_path / "bank", loans__py="def loan(): pass\n")
    context = {"context": {"workspaces": [str(shop), str(bank)]}}
    async with FakeUpstream() as fake:
        fake.play(answer(FACT[:20], FACT[20:]), answer("Hi."))
        settings = {**settings_for(fake.url), **context, **ON}
        async with running(settings, clock=clock) as editor:
            await until_complete(editor)
            await chat(editor, "Is the fare of children right?", "then", shop)
            clock.now += 7 * DAY
            await chat(editor, "Good morning.", "now", shop)
            await chat(editor, "Good morning.", "now-2", bank)
            code, _, memory = (await ask(editor, "shop")).partition("\nFrom earlier")
            assert "Path: fares.py" in code
            assert "2024-10-04, in shop" in memory
            assert FACT in memory
            assert FACT not in await ask(editor, "bank")
            assert FACT not in await ask(editor, "shop", conversation_id="then")
            assert FACT not in await ask(
                editor, "shop", enable_conversation_retrieval=False
            )
            short = await ask(editor, "shop", max_output_length=1500)
            assert len(short) <= 1500
            assert FACT in short
            tools = (await call(editor, "tools/list"))["tools"]
            assert "conversation-memory" in [tool["name"] for tool in tools]
            assert FACT in await recall(editor, shop)
            assert FACT not in await recall(editor, bank)
            refused = await editor.post(
                "/byok/memory",
                {"forget": "all"},
                headers={"Authorization": f"Bearer {editor.token}"},
            )
            assert refused.status == 403
            assert FACT in await recall(editor, shop)
            forgotten = await editor.post(
                "/byok/memory", {"forget": {"conversation": "then"}}
            )
            assert forgotten.json["forgotten"] == 1
            assert FACT not in await ask(editor, "shop")
            assert FACT not in await recall(editor, shop)


def contents(folder: Path) -> dict[Path, bytes]:
    """Read what byok has stored, but for its log, its journal and lists of models."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    others = ("byok.log", "journal.db", "models.json")
    return {
        file: file.read_bytes() for file in files if not file.name.startswith(others)
    }


async def test_off_no_byte_is_stored_and_no_tool_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYOK_HOME", str(tmp_path / "home"))
    async with running(upstream="demo") as editor:
        before = contents(tmp_path / "home")
        await chat(editor, QUESTION, "then", tmp_path)
        tools = (await call(editor, "tools/list"))["tools"]
        assert "conversation-memory" not in [tool["name"] for tool in tools]
        assert "[memory]" in await recall(editor, tmp_path)
        assert (await editor.post("/byok/memory")).json["on"] is False
        assert contents(tmp_path / "home") == before


IDS: list[Any] = [
    7,
    1.5,
    None,
    True,
    [],
    {"a": 1},
    "",
    "x" * 10_000,
    "\ud800",
    "a\x00b",
    "'; --",
]


async def test_ids_of_any_type_are_remembered(tmp_path: Path) -> None:
    async with running(ON, upstream="demo") as editor:
        for id in IDS:
            await chat(editor, f"The oven of {id!r:.20}", id, tmp_path)
        told = (await editor.post("/byok/memory")).json
        assert (told["turns"], len(told["latest"])) == (len(IDS), told["conversations"])
        daemon = (await editor.post("/byok/daemon")).json
        [line] = daemon["features"]["memory"]
        assert line["key"] == "memory.on"
        for one in told["latest"]:
            wish = {"conversation": one["name"]}
            assert (await editor.post("/byok/memory", {"forget": wish})).status == 200
        assert (await editor.post("/byok/memory")).json["turns"] == 0
