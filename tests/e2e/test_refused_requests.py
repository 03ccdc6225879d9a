"""Agents and chats go on where a model refuses tools, their calls, or pictures."""

import json
from typing import Any

import pytest
from aiohttp import web

from tests.fakes.bodies import PNG, call_node, exchange, image_node, result_node, tool
from tests.fakes.daemon import Answer, Editor, running, settings_for
from tests.fakes.strict import StrictUpstream
from tests.fakes.upstream import FakeUpstream, tool_answer

TOOL = tool()
WORKED = [
    exchange("Go.", calls=[call_node("c1")]),
    exchange("", "Done.", nodes=[result_node("c1", "the lexer")]),
]
SHOT = {
    "content_nodes": [
        {"type": 1, "text_content": "shot"},
        {"type": 2, "image_content": {"image_data": PNG, "format": 1}},
    ]
}


class Limited(StrictUpstream):
    """A strict upstream whose model lacks something besides."""

    def __init__(self, lacks: str) -> None:
        super().__init__()
        self._lacks = lacks

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        message = getattr(self, f"_{self._lacks}")(body)
        if not message:
            return await super()._chat(request)
        self.requests.append(body)
        return web.json_response({"error": {"message": message}}, status=400)

    @staticmethod
    def _tools(body: dict[str, Any]) -> str:
        return "gemma does not support tools" if "tools" in body else ""

    @staticmethod
    def _pictures(body: dict[str, Any]) -> str:
        shown = any(isinstance(m["content"], list) for m in body["messages"])
        return "image input is not supported by this model" if shown else ""

    @staticmethod
    def _bare_history(body: dict[str, Any]) -> str:
        called = any(m.get("tool_calls") for m in body["messages"])
        wanted = "Anthropic expects the `tools=` param to be passed in"
        return wanted if called and "tools" not in body else ""

    @staticmethod
    def _odd_tools(body: dict[str, Any]) -> str:
        names = [tool["function"]["name"] for tool in body.get("tools", ())]
        return "Invalid schema for function 'odd': no" if "odd" in names else ""


async def answered(editor: Editor, upstream: Limited, **body: Any) -> list[Answer]:
    """Ask the same twice: the second time without a refusal."""
    before = len(upstream.requests)
    answers = [await editor.chat(**body) for _ in range(2)]
    assert len(upstream.requests) - before == 3
    assert upstream.refusals == []
    for answer in answers:
        assert answer.status == 200
        assert "error" not in answer.last
    return answers


def notices(answer: Answer) -> list[str]:
    return [line for line in answer.text.split("\n") if line.startswith("[byok] ")]


AGENT = {"tool_definitions": [TOOL], "mode": "AGENT"}
PICTURED = exchange("Look.", "A cat.", nodes=[image_node()])
TOOL_SHOT = {
    "message": "",
    "chat_history": [exchange("Open it.", calls=[call_node("c1")])],
    "nodes": [result_node("c1", "shot", **SHOT)],
}


@pytest.mark.parametrize(
    ("lacks", "body", "told"),
    [
        pytest.param("tools", AGENT, "without tools", id="agent without tools"),
        pytest.param("tools", {"tool_definitions": [TOOL]}, "", id="chat with tools"),
        pytest.param(
            "pictures", {"nodes": [image_node()]}, "support images", id="a picture"
        ),
        pytest.param(
            "pictures",
            {"chat_history": [PICTURED]},
            "support images",
            id="an old picture",
        ),
        pytest.param(
            "pictures", AGENT | TOOL_SHOT, "support images", id="a tool's screenshot"
        ),
        pytest.param(
            "bare_history", {"chat_history": WORKED}, "", id="chat after agent work"
        ),
        pytest.param(
            "bare_history",
            {"chat_history": WORKED, "silent": True, **AGENT},
            "",
            id="a silent summary",
        ),
        pytest.param(
            "odd_tools",
            {**AGENT, "tool_definitions": [{**TOOL, "name": "odd"}, TOOL]},
            "left out: odd",
            id="a tool that is refused",
        ),
    ],
)
async def test_remedy_continues_a_turn_where_a_model_lacks_something(
    lacks: str, body: dict[str, Any], told: str
) -> None:
    async with (
        Limited(lacks) as upstream,
        running(settings_for(upstream.url)) as editor,
    ):
        first, _ = await answered(editor, upstream, **body)
    said = notices(first)
    assert len(said) == bool(told)
    assert all(told in line for line in said)
    assert not any("[byok]" in node.get("content", "") for node in first.nodes)


async def test_remedy_notice_is_not_sent_to_a_silent_job() -> None:
    async with (
        Limited("pictures") as upstream,
        running(settings_for(upstream.url)) as editor,
    ):
        (first, _) = await answered(editor, upstream, silent=True, nodes=[image_node()])
    assert first.text == "Fine."


async def test_remedy_keeps_the_schema_of_the_client_for_tool_call_repair() -> None:
    """What was sent to the upstream instead has no say in what its answer means."""
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "paths": {"type": "array"}},
        "anyOf": [{"required": ["n"]}, {"required": ["paths"]}],
    }
    async with (
        FakeUpstream() as upstream,
        running(settings_for(upstream.url)) as editor,
    ):
        upstream.play(tool_answer("view", '{"n": "5", "paths": "[\\"a\\"]"}'))
        answer = await editor.chat(
            tool_definitions=[tool("view", schema)], mode="AGENT"
        )
    (use,) = answer.tool_uses
    assert json.loads(use["input_json"]) == {"n": 5, "paths": ["a"]}
    (sent,) = upstream.requests[0]["tools"]
    assert sent["function"]["parameters"]["properties"]["paths"]["items"] == {}
