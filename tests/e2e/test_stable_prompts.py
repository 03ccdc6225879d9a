"""Over ten turns nothing changes of what a model was told before, so caches hit.

Meanwhile the editor changes everything that an editor can, and byok learns about the
model. Each request must begin with the whole request before it, byte by byte.
"""

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import web

from tests.fakes.daemon import Answer, Editor, running, settings_for
from tests.fakes.occasions import TOOLS, definitions
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import FakeUpstream, Script, answer, tool_answer

TURNS = 10
GUIDES = {
    "user_guidelines": "Answer briefly.",
    "workspace_guidelines": "Run `make test`. " * 50,
    "rules": [{"path": "a.md", "content": "Use tabs."}, "No new files."],
    "persona_type": 3,
}


class LateListing(FakeUpstream):
    """Tells of its model only when `known`: then that its window is small."""

    known = False

    async def _list(self, request: web.Request) -> web.Response:
        row = {"id": "fake-model", "context_length": 8000}
        return web.json_response({"data": [row] if self.known else []})


def act(body: dict[str, Any]) -> Script:
    """Call a tool after a question, and answer after its result."""
    calls = sum("tool_calls" in message for message in body["messages"])
    if body.get("tools") and body["messages"][-1]["role"] == "user":
        return Script(tool_answer("view", '{"path": "a.py"}', f"call_{calls}"))
    return Script(answer("Look at `login`.", " Done."))


def editor_state(turn: int) -> dict[str, Any]:
    """What the editor says beside the words; some of it comes and goes."""
    return {
        "path": f"src/file_{turn // 2}.py" if turn != 5 else None,
        "lang": "python",
        "prefix": f"before = {turn}\n",
        "selected_code": f"selected({turn})" if turn % 3 else "",
        "suffix": f"after = {turn}\n",
        "diff": f"+{turn}" if turn == 4 else None,
        "agent_memories": f"Memory {turn // 3}." if turn < 8 else "",
        "request_id_override": None,
        "blobs": {"checkpoint_id": None, "added_blobs": [], "deleted_blobs": []},
    }


def nodes_of(turn: int, words: str, call: str) -> list[dict[str, Any]]:
    """The nodes of a request: words or a result, the folders, the user's edits."""
    result = {"tool_use_id": call, "content": f"line {turn}\n" * 20, "is_error": False}
    first = (
        {"id": 0, "type": 1, "tool_result_node": result}
        if call
        else {"id": 0, "type": 0, "text_node": {"content": words}}
    )
    ide = {
        "workspace_folders": [{"folder_root": "/w", "repository_root": "/w"}],
        "workspace_folders_unchanged": turn > 0,
        "current_terminal": {
            "terminal_id": 0,
            "current_working_directory": f"/w/{turn}",
        },
    }
    edit = {"after_line_start": turn, "before_text": "a", "after_text": f"b{turn}"}
    event = {"path": "src/a.py", "edits": [edit]}
    return [
        first,
        {"id": 1, "type": 4, "ide_state_node": ide},
        {"id": 2, "type": 5, "edit_events_node": {"source": 1, "edit_events": [event]}},
    ]


async def converse(
    editor: Editor, fake: LateListing, mode: str | None, tools: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Hold a conversation as the editors do, and return what went upstream."""
    history: list[dict[str, Any]] = []
    call = ""
    fake.requests.clear()
    for turn in range(TURNS):
        words = "" if call else f"Question {turn}?"
        nodes = nodes_of(turn, words, call)
        reply: Answer = await editor.chat(
            words,
            mode=mode,
            nodes=nodes,
            chat_history=history,
            tool_definitions=tools[turn % 3 :] + tools[: turn % 3],
            conversation_id=f"c-{mode}",
            **GUIDES,
            **editor_state(turn),
        )
        call = reply.tool_uses[0]["tool_use_id"] if reply.tool_uses else ""
        past = {
            "request_id": f"r{turn}",
            "request_message": "",
            "request_nodes": nodes,
            "response_nodes": reply.nodes,
        }
        history = [*history, past]
        if turn == 1:  # only now the upstream tells how small its window is
            fake.known = True
            editor.services.catalog.refresh(anew=True)
            await editor.services.catalog.settle(PATIENCE)
            await asyncio.sleep(0)
    return [*fake.requests]


@pytest.mark.parametrize(
    ("mode", "offered"),
    [("AGENT", TOOLS), ("CLI_AGENT", TOOLS[:5]), ("CHAT", ()), (None, ())],
)
async def test_each_request_begins_with_the_one_before(
    mode: str | None, offered: tuple[str, ...]
) -> None:
    async with LateListing() as fake:
        fake.reply = act
        async with running(settings_for(fake.url, model="fake-model")) as editor:
            asked = await converse(editor, fake, mode, definitions(offered))
            await editor.chat("Hi?", mode=mode, conversation_id="another")
    assert len(asked) == TURNS
    for before, after in pairwise(asked):
        told = before["messages"]
        assert told[0]["role"] == "system"
        assert after["messages"][: len(told)] == told
        assert len(after["messages"]) > len(told)
        others = {"messages", "stream"}
        assert {k: v for k, v in after.items() if k not in others} == {
            k: v for k, v in before.items() if k not in others
        }
    # It was known meanwhile: a new conversation has the prompt for small windows.
    other = fake.requests[-1]["messages"][0]["content"]
    assert len(other) < len(asked[-1]["messages"][0]["content"]) / 2


async def test_what_changed_in_the_editor_was_told() -> None:
    async with LateListing() as fake:
        fake.reply = act
        async with running(settings_for(fake.url, model="fake-model")) as editor:
            asked = await converse(editor, fake, "AGENT", definitions(TOOLS))
    said = str(asked[-1]["messages"])
    for piece in ("file_0.py", "file_4.py", "Memory 0.", "Memory 2.", "/w/9", "b9"):
        assert piece in said
