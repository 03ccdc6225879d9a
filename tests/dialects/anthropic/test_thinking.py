"""When the model is asked to think, and what that excludes."""

from typing import Any

import pytest

from byok.core.chat import (
    Message,
    Sampling,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolUse,
)
from byok.dialects.base import UpstreamRequest
from byok.dialects.model_facts import ModelFacts
from tests.fakes.messages_api import (
    ADAPTIVE,
    BUDGET,
    CALL,
    assistant,
    encode,
    result,
    thought,
    user,
)

EFFORTS = ("low", "medium", "high")
EFFORTS_5 = (*EFFORTS, "xhigh", "max")
GRADED = ModelFacts("m", thinking=True, adaptive_thinking=True, efforts=EFFORTS)
NEXT = ToolCall("toolu_2", "view", "{}")
TOOL = ToolDefinition("view", "See.", {"type": "object"})
FORCED: dict[str, Any] = {
    "tools": (TOOL,),
    "tool_choice": ToolChoice(ToolUse.REQUIRED),
}


def asked(
    facts: ModelFacts, effort: str = "", *history: Message, **fields: Any
) -> UpstreamRequest:
    sampling = {n: fields.pop(n) for n in ("max_tokens", "temperature") if n in fields}
    history = history or (user("?"),)
    return encode(
        *history, facts=facts, sampling=Sampling(effort=effort, **sampling), **fields
    )


def thinking(sent: UpstreamRequest) -> Any:
    return sent.body.get("thinking", {}).get("type")


def test_newer_models_decide_themselves_and_show_their_thoughts() -> None:
    body = asked(ADAPTIVE).body
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert "output_config" not in body


def test_without_effort_a_model_that_decides_itself_is_told_not_to_think() -> None:
    sent = asked(GRADED, "none", user("?"), assistant(thought(), CALL), result())
    assert sent.body["thinking"] == {"type": "disabled"}
    assert [b["type"] for b in sent.body["messages"][1]["content"]] == ["tool_use"]


@pytest.mark.parametrize(
    "fields",
    [{"silent": True}, {"temperature": 0.2}, {"max_tokens": 300}],
    ids=lambda fields: next(iter(fields)),
)
def test_thinking_that_nobody_asked_for_makes_way(fields: dict[str, Any]) -> None:
    facts = ModelFacts("m", thinking=True, adaptive_thinking=True, sampling=True)
    assert thinking(asked(facts, **fields)) == "disabled"
    assert "output_config" not in asked(facts, **fields).body


def test_with_an_effort_the_temperature_makes_way_and_it_is_said_once() -> None:
    sent = asked(GRADED, "high", temperature=0.2)
    assert thinking(sent) == "adaptive"
    assert "temperature" not in sent.body
    assert sent.notices == ("This model takes no temperature while it thinks.",)
    history = (user("?"), assistant("Yes."), user("Why?"))
    assert asked(GRADED, "high", *history, temperature=0.2).notices == ()


def test_a_demanded_call_excludes_thinking() -> None:
    sent = asked(GRADED, "high", **FORCED)
    assert thinking(sent) == "disabled"
    assert sent.body["output_config"] == {"effort": "high"}
    wide = ModelFacts("m", thinking=True, adaptive_thinking=True, efforts=EFFORTS_5)
    body = asked(wide, "max", **FORCED).body  # refused with more than "high"
    assert body["output_config"] == {"effort": "high"}
    assert "because a tool call was demanded" in sent.notices[0]
    assert asked(ADAPTIVE, **FORCED).notices == ()
    older = asked(BUDGET, "high", **FORCED)
    assert thinking(older) is None
    assert "because a tool call was demanded" in older.notices[0]


def test_older_models_get_a_budget_where_an_effort_is_wanted() -> None:
    assert thinking(asked(BUDGET)) is None
    assert thinking(asked(BUDGET, "none")) is None
    body = asked(BUDGET, "medium").body
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 8192}
    assert asked(BUDGET, "max", max_tokens=4000).body["thinking"] == {
        "type": "enabled",
        "budget_tokens": 3000,
    }


def test_a_turn_of_calls_needs_its_own_thinking_at_its_beginning() -> None:
    signed = (user("?"), assistant(thought(), CALL), result())
    assert thinking(asked(BUDGET, "low", *signed)) == "enabled"
    steps = (*signed, assistant(NEXT), result(NEXT))
    assert thinking(asked(BUDGET, "low", *steps)) == "enabled"
    spoken = (*signed, user("Faster!"), assistant(NEXT), result(NEXT))
    assert thinking(asked(BUDGET, "low", *spoken)) is None


def test_thinking_pauses_in_a_turn_of_another_model_and_it_is_said_once() -> None:
    turn = (user("?"), assistant(CALL), result())
    sent = asked(BUDGET, "low", *turn)
    assert thinking(sent) is None
    assert "does not think in this turn" in sent.notices[0]
    later = asked(BUDGET, "low", *turn, assistant(NEXT), result(NEXT))
    assert (thinking(later), later.notices) == (None, ())
    answered = (*turn, assistant("Done."), user("More?"))
    assert thinking(asked(BUDGET, "low", *answered)) == "enabled"


@pytest.mark.parametrize("facts", [ModelFacts("m"), ModelFacts("m", thinking=False)])
def test_a_model_that_does_not_reason_is_asked_without(facts: ModelFacts) -> None:
    assert asked(facts, "none").notices == ()
    sent = asked(facts, "high")
    assert sent.body.keys() & {"thinking", "output_config"} == set()
    assert "`high` was not sent" in sent.notices[0]


def test_one_of_both_sampling_parameters_is_sent_and_at_most_1() -> None:
    sent = encode(user("?"), sampling=Sampling(temperature=1.5, top_p=0.9))
    assert sent.body["temperature"] == 1
    assert "top_p" not in sent.body
    assert len(sent.notices) == 2
    assert encode(user("?"), sampling=Sampling(top_p=0.9)).body["top_p"] == 0.9
    none = ModelFacts("m", sampling=False)
    sent = encode(user("?"), facts=none, sampling=Sampling(temperature=0.5))
    assert "temperature" not in sent.body and sent.notices
