"""A real Ollama behind byok: text, tools, thoughts, a completion, and what it refuses.

It runs the model tiny-tools in three forms: `tooly` with a template that has tools and
a context length of 131,072, `tiny` without a template of its own, and `fimmy` with a
template that has a suffix and no tools.

    BYOK_OLLAMA=http://127.0.0.1:11434 scripts/test tests/e2e/test_real_ollama.py
"""

import json
import os
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.fakes.bodies import PNG, call_node, exchange, image_node, result_node
from tests.fakes.daemon import Editor, running

URL = os.environ.get("BYOK_OLLAMA", "")
GREETING = "Grüße, 世界 🌍👩\u200d👩\u200d👧! Done."
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not URL, reason="BYOK_OLLAMA names no server"),
]
PARAMETERS = {
    "read_file": {"path": "string", "line": "integer"},
    "list_dir": {"dir": "string"},
    "write_file": {"path": "string", "text": "string"},
}


def offer(padding: int = 0) -> list[dict[str, Any]]:
    """Return the tools that the model knows, with descriptions of that size."""
    return [
        {
            "name": name,
            "description": "Words. " * (padding // 7),
            "input_schema_json": json.dumps(
                {
                    "type": "object",
                    "properties": {key: {"type": kind} for key, kind in fields.items()},
                }
            ),
        }
        for name, fields in PARAMETERS.items()
    ]


@pytest.fixture
async def editor() -> AsyncIterator[Editor]:
    box = {"type": "ollama", "base_url": URL, "temperature": 0.0}
    async with running({"upstreams": {"box": box}}) as made:
        yield made


async def loaded(model: str) -> int:
    """Return the window with which a model is loaded."""
    async with aiohttp.ClientSession() as http, http.get(f"{URL}/api/ps") as answer:
        rows = (await answer.json())["models"]
    found = [r["context_length"] for r in rows if r["name"] == f"{model}:latest"]
    return found[0] if found else 0


async def test_a_chat_is_answered(editor: Editor) -> None:
    for model in ("tooly", "tiny"):
        answer = await editor.chat("please do #A", model=f"byok:box:{model}")
        assert answer.text == GREETING


async def test_think_tags_and_several_calls_arrive(editor: Editor) -> None:
    answer = await editor.chat("please do #F", tool_definitions=offer())
    assert answer.text == "It is 42."
    answer = await editor.chat("please do #E", tool_definitions=offer())
    [use] = answer.tool_uses
    assert json.loads(use["input_json"]) == {"dir": "/tmp"}
    answer = await editor.chat("please do #D", tool_definitions=offer())
    [use] = answer.tool_uses
    assert json.loads(use["input_json"])["text"] == 'a\n"q"\t🌍'


async def test_ten_turns_of_an_agent_with_20_kb_of_tools_are_read_whole() -> None:
    """The model writes nonsense after so much, but its server counts what it read."""
    history, nodes, message = list[Any](), list[Any](), "please do #B"
    counts, windows = list[int](), list[int]()
    section = {"type": "ollama", "base_url": URL, "temperature": 1.0, "max_tokens": 40}
    async with running({"upstreams": {"box": section}}) as editor:
        for number in range(10):
            answer = await editor.chat(
                message,
                nodes=nodes,
                chat_history=history,
                tool_definitions=offer(6800),
                conversation_id="c",
                mode="AGENT",
                model="byok:box:tooly",
            )
            assert "read only" not in answer.text
            windows.append(await loaded("tooly"))
            usage = [node["token_usage"] for node in answer.nodes if node["type"] == 10]
            counts += [row["input_tokens"] for row in usage]
            call = call_node(f"call_{number}", "read_file", '{"path": "a.py"}')
            history.append(exchange(message, answer.text, nodes=nodes, calls=[call]))
            nodes = [result_node(f"call_{number}", f"{number} line\n" * 200)]
            message = ""
    print(counts, windows)
    assert counts == sorted(counts) and counts[0] > 20_000, "a token per byte"
    assert windows == sorted(windows) and len({*windows}) <= 3


async def test_a_gap_in_code_is_filled(editor: Editor) -> None:
    body = {"prompt": "def f(", "suffix": "):\n", "path": "a.py"}
    answer = await editor.post("/completion", {**body, "model": "byok:box:fimmy"})
    assert answer.status == 200


async def test_a_picture_becomes_a_sentence_that_is_told(editor: Editor) -> None:
    answer = await editor.chat("please do #A", nodes=[image_node(PNG)])
    assert "does not support images" in answer.text


async def test_a_model_without_tools_is_asked_without_them(editor: Editor) -> None:
    answer = await editor.chat(
        "Hi?", tool_definitions=offer(), model="byok:box:fimmy", mode="AGENT"
    )
    assert "without tools" in answer.text
