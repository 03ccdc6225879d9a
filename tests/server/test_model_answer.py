"""An answer on its way: how it ends or fails, and what of its calls is mended."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator

import pytest

from byok.core.errors import UpstreamGarbled
from byok.core.events import Finish, FinishReason, StreamEvent, TextDelta
from byok.core.record import Hop
from byok.server.http.deadlines import Timing
from byok.upstream.base import Plan
from byok.upstream.demo import DemoUpstream
from tests.fakes.daemon import Editor, Watcher, daemon_with, running, settings_for
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import (
    DONE,
    FakeUpstream,
    Script,
    answer,
    delta,
    event,
    tool_answer,
)

STOP = Finish(FinishReason.STOP)


async def test_a_whole_answer_is_one_object(fake: FakeUpstream, client: Editor) -> None:
    fake.play(answer("One ", "two."))
    reply = await client.post("/chat", {"message": "x"})
    assert reply.status == 200
    assert reply.headers["Content-Type"] == "application/json"
    assert (reply.json["text"], reply.json["stop_reason"]) == ("One two.", 1)
    assert "error" not in reply.json


@pytest.mark.case("F02")
async def test_a_whole_answer_that_fails_later_keeps_its_text(
    fake: FakeUpstream, client: Editor
) -> None:
    fake.play(Script([delta(content="One")]))
    reply = await client.post("/chat", {"message": "x"})
    assert reply.status == 200
    assert reply.json["text"].startswith("One\n[byok] fake: ")
    assert reply.json["stop_reason"] == 0
    assert reply.json["error"]["code"] == "upstream_cut"


async def test_streamed_answer_that_fails_says_so_in_its_text_and_in_its_last_line(
    fake: FakeUpstream, client: Editor
) -> None:
    fake.play(Script([delta(content="One"), event({"error": {"message": "broke"}})]))
    reply = await client.chat()
    assert reply.status == 200
    assert reply.text.startswith("One\n[byok] fake: ")
    assert reply.last["stop_reason"] == 0
    assert set(reply.last["error"]) == {"code", "message", "request_id"}
    assert reply.last["error"]["code"] == "upstream_failed"
    assert "broke" in reply.last["error"]["message"]
    assert [n["content"] for n in reply.nodes if n["type"] == 0] == ["One"]


class Odd(DemoUpstream):
    """Says two things, and ends in a way of its own."""

    def __init__(self, *end: StreamEvent, error: Exception | None = None) -> None:
        super().__init__("demo")
        self._end = end
        self._error = error

    async def send(self, plan: Plan) -> AsyncGenerator[list[StreamEvent], None]:
        yield [TextDelta("One ")]
        yield [TextDelta("two."), *self._end]
        if self._error is not None:
            raise self._error


NO_END = Odd()
LATE_FAILURE = Odd(STOP, error=UpstreamGarbled("late"))
LATE_FAULT = Odd(STOP, error=KeyError("late"))


@pytest.mark.parametrize(
    ("path", "upstream"),
    [
        ("/chat-stream", NO_END),
        ("/chat-stream", LATE_FAILURE),
        ("/chat-stream", LATE_FAULT),
        ("/chat", NO_END),
        ("/chat", LATE_FAILURE),
        ("/chat", LATE_FAULT),
    ],
)
async def test_an_answer_that_is_whole_ends_once_and_well(
    path: str, upstream: Odd
) -> None:
    async with daemon_with(upstream) as editor:
        reply = await editor.post(path, {"message": "x"})
    assert reply.text == "One two."
    assert [line["stop_reason"] for line in reply.lines if line["stop_reason"]] == [1]
    assert "error" not in reply.last


async def test_a_fault_ends_a_whole_answer_as_a_failure_does() -> None:
    async with daemon_with(Odd(error=KeyError("early"))) as editor:
        body = {"file_contents": "old\n", "edit_summary": "new"}
        reply = await editor.post("/agents/edit-file", body)
    assert (reply.status, reply.json["modified_file_contents"]) == (200, "old\n")
    assert reply.json["is_error"] is True


READ = {
    "name": "read",
    "description": "Read lines of a file.",
    "input_schema_json": json.dumps(
        {
            "type": "object",
            "properties": {"path": {"type": "string"}, "line": {"type": "integer"}},
            "required": ["path"],
        }
    ),
}


async def test_tool_call_repair_is_logged_with_before_after_and_rule(
    fake: FakeUpstream, caplog: pytest.LogCaptureFixture, client: Editor
) -> None:
    caplog.set_level(logging.INFO, "byok.server.model_answer")
    fake.play(tool_answer("read", '{"path": "a.py", "line": "5"}'))
    reply = await client.chat(tool_definitions=[READ])
    [use] = reply.tool_uses
    assert json.loads(use["input_json"]) == {"path": "a.py", "line": 5}
    [told] = [r.getMessage() for r in caplog.records if "repaired" in r.getMessage()]
    assert told.startswith("tool call of read repaired (")
    before, _, after = told.partition(" -> ")
    assert '"5"' in before
    assert ":5}" in after


async def test_tool_call_repair_log_shows_only_the_position(
    fake: FakeUpstream, caplog: pytest.LogCaptureFixture, client: Editor
) -> None:
    caplog.set_level(logging.INFO, "byok.server.model_answer")
    code = "SECRET-CODE " * 100
    arguments = json.dumps({"path": code, "line": "5"})
    fake.play(tool_answer("read", arguments))
    await client.chat(tool_definitions=[READ])
    assert "repaired" in caplog.text
    assert caplog.text.count("SECRET-CODE") < 20


async def test_tool_call_retry_continues_an_agent_after_invalid_json(
    fake: FakeUpstream, caplog: pytest.LogCaptureFixture, client: Editor
) -> None:
    caplog.set_level(logging.INFO)
    broken, whole = r'{"path": "a\d"}', r'{"path": "a\\d"}'
    usage = event(
        {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}
    )
    first = [delta(content="I read."), *tool_answer("read", broken)[:-1], usage, DONE]
    fake.play(first, [*tool_answer("read", whole)[:-1], usage, DONE])
    reply = await client.chat(tool_definitions=[READ])
    assert reply.text == "I read."
    assert [use["input_json"] for use in reply.tool_uses] == [whole]
    assert reply.last["stop_reason"] == 3
    counts = [n["token_usage"] for n in reply.nodes if n["type"] == 10]
    assert [(c["input_tokens"], c["output_tokens"]) for c in counts] == [(10, 4)]
    *_, answer, told = fake.requests[1]["messages"]
    assert answer["content"] == "I read."
    assert answer["tool_calls"][0]["function"]["arguments"] == "{}"
    assert told["role"] == "tool"
    assert r"a\d" in told["content"]
    assert "asking fake again" in caplog.text


async def test_what_a_turn_cost_is_told_though_its_second_answer_broke(
    fake: FakeUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    usage = event(
        {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}
    )
    broken = tool_answer("read", r'{"path": "a\d"}')
    fake.play([*broken[:-1], usage, DONE], [delta(content="I read.")])
    async with running(settings_for(fake.url)) as editor:
        reply = await editor.chat(tool_definitions=[READ])
    assert reply.last["error"]["code"] == "upstream_cut"
    counts = [n["token_usage"] for n in reply.nodes if n["type"] == 10]
    assert [(c["input_tokens"], c["output_tokens"]) for c in counts] == [(5, 2)]
    assert "in=5 cached=0 out=2" in caplog.text


async def test_tool_call_retry_can_be_switched_off(fake: FakeUpstream) -> None:
    fake.play(tool_answer("read", r'{"path": "a\d"}'))
    async with running({**settings_for(fake.url), "tools": {"ask_again": 0}}) as editor:
        reply = await editor.chat(tool_definitions=[READ])
    assert len(fake.requests) == 1
    assert reply.tool_uses == []
    assert "[byok] The model's call of read was not passed on" in reply.text
    assert "not valid JSON" in reply.text


def calls(*names: str) -> list[bytes]:
    """Script an answer that calls these tools in one turn."""
    made = [
        {
            "index": place,
            "id": f"call_{place}",
            "type": "function",
            "function": {"name": name, "arguments": '{"path": "a.py"}'},
        }
        for place, name in enumerate(names)
    ]
    return [delta(tool_calls=made), delta(finish="tool_calls"), DONE]


WRITE = {**READ, "name": "write"}


@pytest.mark.parametrize(
    ("flags", "names"),
    [({}, ["read"]), ({"support_parallel_tool_use": True}, ["read", "read", "write"])],
)
async def test_names_of_the_tools_that_were_passed_on_are_noted(
    fake: FakeUpstream, flags: dict[str, bool], names: list[str]
) -> None:
    seen = Watcher()
    fake.play(calls("read", "read", "write"))
    async with running(settings_for(fake.url), observers=[seen]) as editor:
        reply = await editor.chat(
            tool_definitions=[READ, WRITE], feature_detection_flags=flags
        )
    assert [use["tool_name"] for use in reply.tool_uses] == names
    assert [record.tool_calls for record in seen.finished] == [names]


@pytest.mark.parametrize(("parallel", "times"), [(False, 1), (True, 2)])
@pytest.mark.parametrize("stream", [False, True])
async def test_names_of_tools_are_noted_for_other_clients_too(
    fake: FakeUpstream, parallel: bool, times: int, stream: bool
) -> None:
    seen = Watcher()
    fake.play(calls("read", "read"))
    tool = {"type": "function", "name": "read", "parameters": {"type": "object"}}
    async with running(settings_for(fake.url), observers=[seen]) as editor:
        body = {"model": "m", "input": "Hi", "tools": [tool], "stream": stream}
        answer = await editor.post(
            "/v1/responses", {**body, "parallel_tool_calls": parallel}
        )
    *_, last = answer.raw.split(b"\ndata: ")
    whole = json.loads(last)["response"] if stream else answer.json
    output = whole["output"]
    assert [item["name"] for item in output] == ["read"] * times
    assert [record.tool_calls for record in seen.finished] == [["read"] * times]


RESTLESS = Timing(beat=0.02, head_after=0.01, grace=0.1, last_words=0.2)


async def test_stream_heartbeats_go_on_between_texts_and_hurt_none(
    fake: FakeUpstream,
) -> None:
    first, last, *rest = answer("One ", "two.")
    first_due, last_due, watcher = asyncio.Event(), asyncio.Event(), Watcher()

    async def beats(said: bytes) -> None:
        """Wait for two lines without text behind what was said."""
        while True:
            sent = watcher.bytes[Hop.TO_CLIENT]
            if said in sent and sent[sent.index(said) :].count(b'"text":""') >= 2:
                return
            await asyncio.sleep(0.01)

    fake.play(Script([first_due, first, last_due, last, *rest]))
    async with (
        running(settings_for(fake.url), timing=RESTLESS, observers=[watcher]) as editor,
        asyncio.timeout(PATIENCE),
    ):
        asking = asyncio.ensure_future(editor.chat())
        await beats(b"")
        first_due.set()
        await beats(b"One ")
        last_due.set()
        reply = await asking
    texts = [line["text"] for line in reply.lines]
    assert reply.text == "One two."
    assert set(texts[: texts.index("One ")]) == {""}
    assert [line for line in reply.lines if line["stop_reason"]] == [reply.last]


async def test_a_static_stream_has_one_line_or_none(editor: Editor) -> None:
    one = await editor.post("/remote-agents/list-stream")
    none = await editor.post("/remote-agents/agent-history-stream")
    assert one.lines[0]["remote_agents"] == []
    assert (none.status, none.raw) == (200, b"")
    assert none.headers["Content-Type"].startswith("application/x-ndjson")
