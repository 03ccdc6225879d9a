"""Agents that go round in circles, through the real server: told, then ended."""

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from byok.core.record import RequestRecord
from tests.fakes.bodies import exchange, result_node
from tests.fakes.daemon import Answer, Editor, running, settings_for
from tests.fakes.upstream import FakeUpstream, answer, tool_answer

VIEW = {
    "name": "view",
    "description": "Show a file.",
    "input_schema_json": json.dumps(
        {"type": "object", "properties": {"path": {"type": "string"}}}
    ),
}
NOTE = "[Note from byok: "
ENDED = "[byok] byok ended this turn"


class Records:
    """Observer that keeps the loop of each request."""

    def __init__(self) -> None:
        self.loops: list[str] = []

    def request_started(self, record: RequestRecord, /) -> None:
        """Wait for the end."""

    def request_finished(self, record: RequestRecord, /) -> None:
        self.loops.append(record.loop)


class Agent:
    """An editor's agent whose tools give what `run` says of their number."""

    def __init__(self, editor: Editor, run: Callable[[int], dict[str, Any]]) -> None:
        self._editor, self._run = editor, run
        self.history: list[dict[str, Any]] = []
        self._calls = 0

    async def turn(self, words: str, most: int = 500) -> tuple[Answer, int]:
        """Ask, and run the tools that are called; return the last answer, and steps."""
        nodes: list[dict[str, Any]] = []
        for steps in range(most):
            asked = {"nodes": nodes, "chat_history": self.history}
            reply = await self._editor.chat(
                words, mode="AGENT", tool_definitions=[VIEW], **asked
            )
            past = exchange(words, reply.text, nodes=nodes, calls=reply.nodes)
            self.history.append(past)
            if not reply.tool_uses:
                return reply, steps
            words, nodes = "", []
            for use in reply.tool_uses:
                self._calls += 1
                given = self._run(self._calls)
                nodes.append(result_node(use["tool_use_id"], **given))
        raise AssertionError("the model never stops calling tools")


def fail(number: int) -> dict[str, Any]:
    return {"content": f"No such file, at second {number}.", "is_error": True}


async def test_a_model_that_repeats_a_failing_call_for_ever_is_told_and_ended(
    fake: FakeUpstream,
) -> None:
    fake.play(tool_answer("view", '{"path": "a.py"}'))
    records = Records()
    async with running(settings_for(fake.url), observers=[records]) as editor:
        agent = Agent(editor, fail)
        last, steps = await agent.turn("Look at a.py.")
        asked = [request["messages"] for request in fake.requests]
        fake.play(answer("I cannot."))
        again, more = await agent.turn("Then stop.")
    assert (steps, len(asked)) == (6, 6)
    assert last.status == 200
    assert last.last["stop_reason"] == 1
    assert "error" not in last.last
    assert last.text.count(ENDED) == 1
    assert "view failed 6 times with the same arguments" in last.text
    assert (again.text, more) == ("I cannot.", 0)
    told = [NOTE in str(messages[-1]["content"]) for messages in asked]
    assert told == [False, False, False, True, True, True]
    for earlier, later in pairwise(asked):
        assert later[: len(earlier)] == earlier  # upstreams keep their cache
    assert fake.requests[-1]["messages"][: len(asked[-1])] == asked[-1]
    assert ENDED not in json.dumps(fake.requests[-1])
    assert records.loops == [
        *("", "", ""),
        *("warned-failing-3", "warned-failing-4", "warned-failing-5"),
        "ended-failing-6",
        "",
    ]


async def test_a_long_honest_turn_is_left_alone(
    fake: FakeUpstream, editor: Editor
) -> None:
    calls = [tool_answer("view", f'{{"path": "{n}.py"}}') for n in range(40)]
    fake.play(*calls, answer("Done."))
    agent = Agent(editor, lambda n: {"content": f"# file {n}"})
    last, steps = await agent.turn("Look at all.")
    assert (last.text, steps) == ("Done.", 40)
    assert NOTE not in fake.bodies[-1].decode()


async def test_a_chat_in_one_piece_is_ended_too(
    fake: FakeUpstream, editor: Editor
) -> None:
    fake.play(tool_answer("view", "{}"))
    agent = Agent(editor, fail)
    await agent.turn("Look.")
    nodes = agent.history.pop()["request_nodes"]
    asked = {"message": "", "nodes": nodes, "chat_history": agent.history}
    whole = await editor.post("/chat", asked)
    assert whole.status == 200
    assert ENDED in whole.json["text"]
    assert whole.json["stop_reason"] == 1


async def test_an_ended_turn_counts_for_no_cap(fake: FakeUpstream) -> None:
    fake.play(tool_answer("view", "{}"))
    async with running(
        {**settings_for(fake.url), "caps": {"requests_per_day": 6}}
    ) as editor:
        last, steps = await Agent(editor, fail).turn("Look.")
        [cap] = (await editor.post("/byok/daemon")).json["features"]["caps"]
    assert (steps, ENDED in last.text) == (6, True)
    assert cap["used"] == 6


def failing(times: int) -> dict[str, Any]:
    """Return a question of Anthropic's API after so many equal failures."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Do it."}]
    for n in range(times):
        use = {"type": "tool_use", "id": f"c{n}", "name": "edit", "input": {}}
        said = {"type": "tool_result", "tool_use_id": f"c{n}", "content": "No."}
        messages.append({"role": "assistant", "content": [use]})
        messages.append({"role": "user", "content": [{**said, "is_error": True}]})
    return {"model": "byok:fake:m", "max_tokens": 99, "messages": messages}


async def test_clients_of_other_apis_are_told_and_ended_too(fake: FakeUpstream) -> None:
    fake.play(answer("I see."))
    records = Records()
    async with running(settings_for(fake.url), observers=[records]) as editor:
        told = await editor.post("/v1/messages", failing(3))
        ended = await editor.post("/v1/messages", failing(6))
    assert told.json["content"][0]["text"] == "I see."
    [asked] = fake.requests
    assert NOTE in asked["messages"][-1]["content"]
    assert ended.json["content"][0]["text"].startswith("byok ended this turn")
    assert ended.json["stop_reason"] == "end_turn"
    assert records.loops == ["warned-failing-3", "ended-failing-6"]
