"""Fields that no client should send: a chat is answered, and nothing odd goes up."""

import json
import time
from typing import Any

import pytest

from tests.fakes.bodies import (
    PNG,
    call_node,
    exchange,
    image_node,
    result_node,
    text_node,
    tool,
)
from tests.fakes.cases import case_param
from tests.fakes.daemon import Answer, Editor
from tests.fakes.raw import put, request
from tests.fakes.strict import broken_rules
from tests.fakes.upstream import FakeUpstream, answer, tool_answer

TURNS = [exchange(f"question {n}", f"answer {n}") for n in range(5000)]
DEEP: dict[str, Any] = {"type": "object"}
for _ in range(200):
    DEEP = {"type": "object", "properties": {"x": DEEP}}
LOOP = {"type": "object", "properties": {"x": {"$ref": "#"}}}


async def asked(
    fake: FakeUpstream, editor: Editor, **body: Any
) -> tuple[Answer, dict[str, Any]]:
    """Send one chat; return its answer and the valid request that went up."""
    started = time.process_time()
    reply = await editor.chat(**body)
    assert time.process_time() - started < 10
    control = await editor.chat("Still there?")
    assert control.last["stop_reason"] == 1
    assert (reply.status, reply.last["stop_reason"]) == (200, 1)
    sent = fake.requests[0]
    assert broken_rules(sent) == []
    return reply, sent


@pytest.mark.parametrize(
    "body",
    [
        case_param({"chat_history": TURNS}, id="B85-5000-turns"),
        case_param(
            {
                "nodes": [
                    {"id": n, "type": n, "content": "?", "x": {}} for n in range(1000)
                ]
            },
            id="B85-every-type-of-node",
        ),
        case_param(
            {"chat_history": [{}, None, 7, {"request_message": None}]},
            id="B85-nothing-in-history",
        ),
        case_param(
            dict.fromkeys(
                ("nodes", "chat_history", "tool_definitions", "model", "path", "blobs")
            ),
            id="B85-nulls",
        ),
        case_param(
            {"stop_sequences": 7, "temperature": "hot", "top_p": -1}, id="B90-types"
        ),
        case_param(
            {"stop_sequences": [[], 1], "temperature": 3, "max_tokens": -1},
            id="B90-ranges",
        ),
        case_param({"temperature": -1, "max_tokens": 10**40}, id="B90-far-out"),
        case_param(
            {"stop_sequences": None, "temperature": None, "top_p": None},
            id="B90-nulls",
        ),
    ],
)
async def test_odd_fields_change_nothing(
    fake: FakeUpstream, editor: Editor, body: dict[str, Any]
) -> None:
    _, sent = await asked(fake, editor, message="Go on.", **body)
    assert "Go on." in json.dumps(sent["messages"][-1])
    assert not {"stop", "stop_sequences", "temperature", "top_p"} & set(sent)
    assert not {"max_tokens", "max_completion_tokens"} & set(sent)


@pytest.mark.case("B85")
async def test_message_that_is_missing_gives_an_empty_answer(
    fake: FakeUpstream, editor: Editor
) -> None:
    reply = await editor.post("/chat-stream", {"conversation_id": "c"})
    assert (reply.status, reply.text, fake.requests) == (200, "", [])


@pytest.mark.parametrize(
    "picture",
    [
        case_param("no base64 at all!", id="B86-no-base64"),
        case_param("data:image/svg+xml;base64,PHN2Zz4=", id="B86-svg"),
        case_param("file:///etc/passwd", id="B86-file"),
        case_param("http://169.254.169.254/latest/meta-data", id="B86-link-local"),
        case_param("URL/picture.png", id="B86-address"),
        case_param(PNG[:12] + "A" * 100 + "!!!!", id="B86-damaged"),
        case_param(7, id="B86-number"),
    ],
)
async def test_image_that_is_invalid_is_neither_fetched_nor_sent(
    fake: FakeUpstream, editor: Editor, picture: Any
) -> None:
    async with FakeUpstream() as canary:
        if isinstance(picture, str):
            picture = picture.replace("URL", canary.url)
        nodes = [text_node("Look."), image_node(picture)]
        _, sent = await asked(fake, editor, message="", nodes=nodes)
    assert canary.requests == canary.list_headers == []
    assert "image_url" not in json.dumps(sent)
    assert "Look." in json.dumps(sent)


@pytest.mark.case("B86")
async def test_image_that_is_large_is_passed_on_whole(
    fake: FakeUpstream, editor: Editor
) -> None:
    data = PNG[:12] + "A" * 900_000
    nodes = [text_node("Look."), image_node(data)]
    _, sent = await asked(fake, editor, message="", nodes=nodes)
    parts = sent["messages"][-1]["content"]
    [url] = [p["image_url"]["url"] for p in parts if p["type"] == "image_url"]
    assert url == f"data:image/png;base64,{data}"


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        case_param([tool(f"t{n}") for n in range(2000)], 2000, id="B87-2000-tools"),
        case_param([tool("t", LOOP)], 1, id="B87-loop"),
        case_param([tool("t", DEEP)], 1, id="B87-deep"),
        case_param([tool("a b"), tool("a.b"), tool("a_b")], 3, id="B87-odd-names"),
        case_param([tool(""), tool("t")], 1, id="B87-empty-name"),
        case_param([tool("n" * 10_000)], 1, id="B87-long-name"),
        case_param([tool("t"), tool("t")], 1, id="B87-twice"),
    ],
)
async def test_tool_definitions_that_are_odd_are_offered_as_valid_ones(
    fake: FakeUpstream, editor: Editor, tools: list[Any], names: int
) -> None:
    _, sent = await asked(fake, editor, message="Go on.", tool_definitions=tools)
    offered = [row["function"]["name"] for row in sent["tools"]]
    assert len(set(offered)) == len(offered) == names


@pytest.mark.case("B87")
async def test_tool_schema_of_excessive_depth_is_refused_with_its_body(
    fake: FakeUpstream, editor: Editor
) -> None:
    tools = [{"name": "t", "input_schema": DEEP}]
    reply = await editor.chat(tool_definitions=tools)
    assert (reply.status, reply.json["error"]["code"]) == (422, "json_too_complex")
    assert fake.requests == []


@pytest.mark.case("B88")
async def test_tool_schema_pattern_is_never_run(
    fake: FakeUpstream, editor: Editor
) -> None:
    hostile = {"path": "a" * 60 + "!"}
    fake.play(tool_answer("view", json.dumps(hostile)))
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string", "pattern": "^(a+)+$"}},
        "patternProperties": {"^(p+a?)+t+$": {"type": "string"}},
    }
    started = time.process_time()
    reply = await editor.chat(tool_definitions=[tool("view", schema)])
    assert time.process_time() - started < 10
    [use] = reply.tool_uses
    assert json.loads(use["input_json"]) == hostile


USE = call_node("c1")


@pytest.mark.parametrize(
    ("history", "nodes"),
    [
        case_param([], [result_node("nobody's")], id="B89-without-a-call"),
        case_param(
            [exchange("look", calls=[USE])],
            [result_node("c1", "first"), result_node("c1", "second")],
            id="B89-twice",
        ),
        case_param(
            [exchange("look", nodes=[result_node("c1")], calls=[USE])],
            [text_node("And?")],
            id="B89-before-the-call",
        ),
        case_param(
            [exchange("look", calls=[USE, call_node("c2")])],
            [result_node("c2", "only this")],
            id="B89-one-of-two",
        ),
        case_param([exchange("look", calls=[USE])], [], id="B89-none"),
        case_param(
            [exchange("a", calls=[USE]), exchange("b", calls=[USE])],
            [result_node("c1")],
            id="B89-the-same-id-again",
        ),
    ],
)
async def test_tool_calls_and_results_always_fit(
    fake: FakeUpstream, editor: Editor, history: list[Any], nodes: list[Any]
) -> None:
    fake.play(answer("Well."))
    reply, sent = await asked(
        fake, editor, message="Go on.", chat_history=history, nodes=nodes
    )
    assert reply.text == "Well."
    for node in nodes:
        content = node.get("tool_result_node", {}).get("content", "")
        assert content in json.dumps(sent["messages"])


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        case_param({"prefix": "x" * (17 * 2**20)}, 413, id="B106-17-mib"),
        case_param({"prefix": "x", "cursor_position": 10**9}, 200, id="B106-beyond"),
        case_param({"prefix": "x", "cursor_position": -1}, 200, id="B106-negative"),
    ],
)
async def test_completion_with_odd_bounds(
    fake: FakeUpstream, editor: Editor, fields: dict[str, Any], status: int
) -> None:
    data = request(target=b"/completion", body=json.dumps(fields).encode())
    assert (await put(editor, data)).status == status
    assert (await editor.chat("Still there?")).text == "Hi."


@pytest.mark.case("B106")
async def test_completion_body_may_have_8_mib_and_its_cursor_is_ignored(
    fake: FakeUpstream, editor: Editor
) -> None:
    odd = {"cursor_position": -(2**70), "suffix_end": "x", "prefix_begin": 10**9}
    prompt = "x" * (7 * 2**20) + "\ndef f("
    raw = json.dumps({"prompt": prompt, **odd}).encode()
    reply = await put(editor, request(target=b"/completion", body=raw))
    assert (reply.status, reply.json["text"]) == (200, "Hi.")
    [sent] = fake.requests
    assert broken_rules(sent) == []
    assert "def f(" in sent["messages"][-1]["content"]
    assert len(json.dumps(sent)) < 20_000
