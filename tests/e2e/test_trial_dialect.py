"""A dialect that shares nothing with OpenAI's, through the real daemon."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from byok.dialects.base import DIALECTS
from byok.dialects.presets import PRESETS, Preset
from tests.fakes.bodies import exchange, result_node, tool
from tests.fakes.daemon import running
from tests.fakes.patience import PATIENCE
from tests.fakes.trial_dialect.dialect import TrialDialect
from tests.fakes.trial_server import TrialServer

TOOLS = [tool("view file", path="string")]
OVER = {"over": "end", "read": 7, "written": 3}
CALL: list[dict[str, Any]] = [
    {"thought": "A file"},
    {"text": "Looking "},
    {"text": "😀 around."},
    {"call": {"place": 0, "id": "c/1", "name": "TOOL"}},
    {"call": {"place": 0, "arguments": '{"pa'}},
    {"call": {"place": 0, "arguments": 'th": "a.py"}'}},
    OVER | {"over": "calls"},
]
ENVIRON = {"BYOK_KEY_BOX": "trial-key-1"}


@pytest.fixture
async def server() -> AsyncIterator[TrialServer]:
    async with TrialServer() as server:
        server.play([{"text": "Hi."}, OVER])
        yield server


@pytest.fixture(autouse=True)
def rows(monkeypatch: pytest.MonkeyPatch, server: TrialServer) -> None:
    """The two rows that a dialect needs; they are gone after the test."""
    monkeypatch.setitem(DIALECTS, "trial", TrialDialect.of)
    preset = Preset({"trial": f"{server.url}/trial"}, local=True)
    monkeypatch.setitem(PRESETS, "trial", preset)


def box(**fields: Any) -> dict[str, Any]:
    return {"upstreams": {"box": {"type": "trial", "model": "small", **fields}}}


async def test_trial_dialect_streams_a_tool_call_and_takes_its_result(
    server: TrialServer,
) -> None:
    async with running(box()) as editor:
        server.play(CALL, [{"text": "Done."}, OVER])
        asked = await editor.chat("Look.", tool_definitions=TOOLS)
        (use,) = asked.tool_uses
        answered = await editor.chat(
            "",
            tool_definitions=TOOLS,
            chat_history=[exchange("Look.", asked.text, calls=asked.nodes)],
            nodes=[result_node(use["tool_use_id"], "x = 1")],
        )
    assert asked.text == "Looking 😀 around."
    assert use["tool_name"] == "view file"
    assert use["input_json"] == '{"path": "a.py"}'
    assert answered.text == "Done."
    turns = server.requests[-1]["turns"]
    (call,) = [turn["call"] for turn in turns if "call" in turn]
    (result,) = [turn for turn in turns if turn["who"] == "tool"]
    (tool,) = server.requests[0]["tools"]
    assert call["name"] == tool["name"] != "view file"
    assert result == {"who": "tool", "id": call["id"], "text": "x = 1"}


@pytest.mark.parametrize("key", ["", "trial-key-1"])
async def test_trial_dialect_sends_its_own_headers_with_and_without_a_key(
    server: TrialServer, key: str
) -> None:
    server.key = key
    async with running(box(), environ=ENVIRON if key else {}) as editor:
        assert (await editor.chat()).text == "Hi."
    for headers in server.headers:
        assert headers["x-trial-version"] == "2"
        assert headers.get("x-trial-key", "") == key
        assert headers["Accept"] == "application/x-ndjson"
        assert "Authorization" not in headers
    assert any(headers.get("x-trial-turns") for headers in server.headers)


async def test_trial_dialect_lists_all_pages_of_models(server: TrialServer) -> None:
    async with running(box()) as editor:
        await editor.services.catalog.settle(PATIENCE)
        listed = [m.model for m in editor.services.catalog.list_models()]
    assert listed == ["small", "large", "larger"]
    assert server.pages == ["/trial/catalog", "/trial/catalog?from=2"]


async def test_trial_dialect_has_nested_parameters_and_nested_remedies(
    server: TrialServer,
) -> None:
    async with running(box(temperature=0.5, max_tokens=900)) as editor:
        await editor.services.catalog.settle(PATIENCE)
        for _ in range(2):
            assert (await editor.chat()).text == "Hi."
    known = {"window": 4096}  # by the list of models
    assert [request["options"] for request in server.requests] == [
        known | {"most_words": 900, "temperature": 0.5},
        known | {"most_words": 900},
        known | {"most_words": 256},
        known | {"most_words": 256},
    ]


async def test_trial_dialect_reads_its_own_refusals(server: TrialServer) -> None:
    server.key = "another"
    async with running(box()) as editor:
        last = (await editor.chat()).last
    assert "Who are you?" in str(last)


async def test_clients_of_other_apis_are_answered_in_the_trial_dialect(
    server: TrialServer,
) -> None:
    body = {"model": "small", "messages": [{"role": "user", "content": "Hi?"}]}
    async with running(box()) as editor:
        answer = await editor.post("/v1/chat/completions", body)
        refused = await editor.post("/v1/embeddings", {"model": "small", "input": "a"})
    assert answer.status == 200
    assert answer.json["choices"][0]["message"]["content"]
    assert len(server.requests) == 1
    assert refused.status == 422
    assert "has no API with /embeddings" in refused.json["error"]["message"]
