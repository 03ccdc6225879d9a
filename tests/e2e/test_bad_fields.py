"""Fields of a chat or a completion: nothing odd goes up, and nothing is run by them."""

import json
import time
from typing import Any

import pytest

from tests.fakes.bodies import PNG, image_node, text_node
from tests.fakes.cases import case_param
from tests.fakes.daemon import Editor, check_alive
from tests.fakes.raw import put, request
from tests.fakes.strict import broken_rules
from tests.fakes.upstream import FakeUpstream, tool_answer


@pytest.mark.parametrize(
    "picture",
    [
        case_param("no base64 at all!", id="B86-no-base64"),
        case_param("file:///etc/passwd", id="B86-file"),
        case_param("URL/picture.png", id="B86-address"),
        case_param(PNG[:12] + "A" * 100 + "!!!!", id="B86-damaged"),
    ],
)
async def test_image_that_is_invalid_is_neither_fetched_nor_sent(
    fake: FakeUpstream, editor: Editor, picture: str
) -> None:
    async with FakeUpstream() as canary:
        picture = picture.replace("URL", canary.url)
        nodes = [text_node("Look."), image_node(picture)]
        assert (await editor.chat("", nodes=nodes)).text == "Hi."
    assert canary.requests == canary.list_headers == []
    [sent] = fake.requests
    assert broken_rules(sent) == []
    assert "image_url" not in json.dumps(sent)
    assert "Look." in json.dumps(sent)


@pytest.mark.case("B87")
async def test_tool_schema_of_excessive_depth_is_refused_with_its_body(
    fake: FakeUpstream, editor: Editor
) -> None:
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(200):
        deep = {"type": "object", "properties": {"x": deep}}
    reply = await editor.chat(tool_definitions=[{"name": "t", "input_schema": deep}])
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
    tools = [{"name": "view", "input_schema": schema}]
    [use] = (await editor.chat(tool_definitions=tools)).tool_uses
    assert time.process_time() - started < 10
    assert json.loads(use["input_json"]) == hostile


REMEMBER = {
    "name": "remember",
    "input_schema": {
        "properties": {"memory": {"type": "string"}},
        "required": ["memory"],
    },
}


async def test_a_memory_holds_the_users_words_and_not_the_editors(
    fake: FakeUpstream, editor: Editor
) -> None:
    fake.play(tool_answer("remember", "{}"))
    reply = await editor.chat(
        "Tests run with make.",
        selected_code="import secret",
        path="a.py",
        tool_definitions=[REMEMBER],
    )
    [use] = reply.tool_uses
    assert json.loads(use["input_json"])["memory"].startswith("Tests run with make.")
    assert "secret" not in use["input_json"]


@pytest.mark.case("B106")
async def test_completion_body_may_have_8_mib_and_its_cursor_is_ignored(
    fake: FakeUpstream, editor: Editor
) -> None:
    async def complete(size: int, **odd: Any) -> Any:
        raw = json.dumps({"prompt": "x" * size + "\ndef f(", **odd}).encode()
        return await put(editor, request(target=b"/completion", body=raw))

    assert (await complete(17 * 2**20)).status == 413
    await check_alive(editor, fake)
    for cursor in (10**9, -(2**70)):
        odd = {"cursor_position": cursor, "suffix_end": "x", "prefix_begin": 10**9}
        reply = await complete(7 * 2**20, **odd)
        assert (reply.status, reply.json["text"]) == (200, "Hi.")
        sent = fake.requests[-1]
        assert broken_rules(sent) == []
        assert "def f(" in sent["messages"][-1]["content"]
        assert len(json.dumps(sent)) < 20_000
