"""The loop around a model: history, limits, and what is counted."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from byok.chat import Json
from byok.events import Usage
from byok.record import RequestRecord
from byok.trials.agent_loop import AgentLoop, TrialLimits
from byok.trials.outcome import TrialOutcome, WrongCall
from byok.trials.tasks import TrialTask
from byok.trials.trial_client import TrialReply

TASK = TrialTask("t", "about", "Do it.", {"a.py": "a = 1\n"}, {"a.py": ("a = 2\n",)})
EDIT = '{"command": "str_replace", "path": "a.py", "old_str_1": "1", "new_str_1": "2"}'
Model = Callable[[int, Json], TrialReply]


def reply(
    text: str = "", *calls: tuple[str, str], failure: str = "", **facts: Any
) -> TrialReply:
    nodes = [
        {
            "id": number,
            "type": 5,
            "tool_use": {
                "tool_use_id": f"c{number}",
                "tool_name": name,
                "input_json": raw,
            },
        }
        for number, (name, raw) in enumerate(calls)
    ]
    record = RequestRecord(usage=Usage(100, 10), first_byte=0.1, prompt="agent@1")
    for name, value in facts.items():
        setattr(record, name, value)
    return TrialReply(text, nodes, failure, record)


async def work(model: Model, **limits: Any) -> tuple[TrialOutcome, list[Json]]:
    bodies: list[Json] = []

    async def ask(body: Json) -> TrialReply:
        bodies.append({**body, "chat_history": [*body["chat_history"]]})
        return model(len(bodies), body)

    loop = AgentLoop(ask, TASK, "byok:x:m", TrialLimits(**limits))
    return await loop.run(), bodies


async def test_a_model_that_edits_and_stops_solves_the_task() -> None:
    def model(step: int, _: Json) -> TrialReply:
        calls = [("view", '{"path": "a.py", "type": "file"}')]
        if step == 2:
            calls = [("str-replace-editor", EDIT)]
        return reply("Done.") if step == 3 else reply(f"Step {step}.", *calls)

    outcome, bodies = await work(model)
    assert outcome.is_solved
    assert (outcome.steps, outcome.calls, outcome.wrong_calls) == (3, 2, 0)
    assert (outcome.input_tokens, outcome.output_tokens) == (300, 30)
    assert (outcome.prompt, outcome.answer) == ("agent@1", "Done.")
    assert bodies[0]["message"] == "Do it."
    assert [len(body["chat_history"]) for body in bodies] == [0, 1, 2]
    [result] = bodies[1]["nodes"]
    assert result["tool_result_node"]["tool_use_id"] == "c0"
    assert "a = 1" in result["tool_result_node"]["content"]
    assert bodies[1]["message"] == ""
    assert len({body["conversation_id"] for body in bodies}) == 1


async def test_a_model_that_never_stops_is_stopped() -> None:
    outcome, _ = await work(
        lambda step, _: reply("", ("str-replace-editor", EDIT)), steps=4
    )
    assert outcome.fault == "it did not stop within 4 steps"
    assert (outcome.steps, outcome.wrong) == (4, {WrongCall.FAILED: 1, "repeated": 2})


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (reply("x" * 200_001), "more than 200,000 characters"),
        (reply(failure="upstream_auth: No."), "upstream_auth: No."),
        (reply("Fine.", upstream="other", model="m"), "byok:other:m answered instead"),
        (reply("Fine."), "a.py was not changed"),
        (TrialReply("Fi", (), "", RequestRecord(), is_cut=True), "was cut"),
        (reply(), "a.py was not changed"),
    ],
    ids=["long", "failure", "fallback", "lazy", "cut", "empty"],
)
async def test_what_ends_a_task_is_told(answer: TrialReply, fault: str) -> None:
    outcome, bodies = await work(lambda step, _: answer)
    assert fault in outcome.fault
    assert len(bodies) == outcome.steps == 1
    assert len(outcome.answer) <= 2000


async def test_a_model_that_hangs_is_left() -> None:
    async def hang(_: Json) -> TrialReply:
        await asyncio.Event().wait()
        raise AssertionError

    outcome = await AgentLoop(hang, TASK, "m", TrialLimits(seconds=0.01)).run()
    assert outcome.fault == "it was not done after 0.01 seconds"
    assert (outcome.steps, outcome.answers) == (1, 0)


async def test_calls_without_end_in_one_answer_are_not_run() -> None:
    many = [("view", '{"path": ".", "type": "directory"}')] * 40
    outcome, bodies = await work(
        lambda step, _: reply("", *many) if step == 1 else reply("Done.")
    )
    assert outcome.calls == len(bodies[1]["nodes"]) == 40
    assert outcome.wrong == {WrongCall.REPEATED: 31, WrongCall.FAILED: 8}


async def test_calls_that_byok_dropped_and_printed_files_are_counted() -> None:
    text = "```\na = 1\n```\n" + "```\n" + "x\n" * 31 + "```"
    outcome, _ = await work(lambda step, _: reply(text, dropped_calls=2))
    assert outcome.wrong == {WrongCall.BROKEN_ARGUMENTS: 2}
    assert outcome.printed == 1
