"""Agents that go round in circles, through the real server: told, then ended."""

import json
from itertools import pairwise
from typing import Any

from tests.fakes.bodies import tool
from tests.fakes.clients import AgentClient
from tests.fakes.daemon import Editor, Watcher, running, settings_for
from tests.fakes.upstream import FakeUpstream, answer, tool_answer

NOTE = "[Note from byok: "
ENDED = "[byok] byok ended this turn"
VIEW = tool("view", {"type": "object", "properties": {"path": {"type": "string"}}})


def fail(number: int) -> dict[str, Any]:
    return {"content": f"No such file, at second {number}.", "is_error": True}


async def test_a_model_that_repeats_a_failing_call_for_ever_is_told_and_ended(
    fake: FakeUpstream,
) -> None:
    fake.play(tool_answer("view", '{"path": "a.py"}'))
    watcher = Watcher()
    async with running(settings_for(fake.url), observers=[watcher]) as editor:
        agent = AgentClient([VIEW], run=fail)
        last = await agent.turn(editor, words="Look at a.py.")
        asked = [request["messages"] for request in fake.requests]
        fake.play(answer("I cannot."))
        again = await agent.turn(editor, words="Then stop.")
    assert (len(asked), len(agent.history)) == (6, 8)
    assert last.status == 200
    assert last.last["stop_reason"] == 1
    assert last.text.count(ENDED) == 1
    assert "view failed 6 times with the same arguments" in last.text
    assert again.text == "I cannot."
    told = [NOTE in str(messages[-1]["content"]) for messages in asked]
    assert told == [False, False, False, True, True, True]
    for earlier, later in pairwise(asked):
        assert later[: len(earlier)] == earlier  # upstreams keep their cache
    assert fake.requests[-1]["messages"][: len(asked[-1])] == asked[-1]
    assert ENDED not in json.dumps(fake.requests[-1])
    assert [record.loop for record in watcher.finished] == [
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
    agent = AgentClient([VIEW], run=lambda n: {"content": f"# file {n}"})
    assert (await agent.turn(editor)).text == "Done."
    assert len(agent.history) == 41
    assert NOTE not in fake.bodies[-1].decode()


async def test_a_chat_in_one_piece_is_ended_too(
    fake: FakeUpstream, editor: Editor
) -> None:
    fake.play(tool_answer("view", "{}"))
    agent = AgentClient([VIEW], run=fail)
    await agent.turn(editor)
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
        last = await AgentClient([VIEW], run=fail).turn(editor)
        [cap] = (await editor.post("/byok/daemon")).json["features"]["caps"]
    assert ENDED in last.text
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
    watcher = Watcher()
    async with running(settings_for(fake.url), observers=[watcher]) as editor:
        told = await editor.post("/v1/messages", failing(3))
        ended = await editor.post("/v1/messages", failing(6))
    assert told.json["content"][0]["text"] == "I see."
    [asked] = fake.requests
    assert NOTE in asked["messages"][-1]["content"]
    assert ended.json["content"][0]["text"].startswith("byok ended this turn")
    assert ended.json["stop_reason"] == "end_turn"
    assert [record.loop for record in watcher.finished] == [
        "warned-failing-3",
        "ended-failing-6",
    ]
