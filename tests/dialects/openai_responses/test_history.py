"""The assistant's turns as items: order, reasoning, phases."""

from typing import Any

import pytest

from byok.core.chat import Origin, Part, ProviderData, TextPart, ThinkingPart, ToolCall
from byok.dialects.base import Target
from byok.dialects.model_facts import ModelFacts, Replay
from byok.dialects.openai_responses.request import CallIds, assistant_items
from byok.dialects.safe_names import Aliases, spell_name

HERE = Origin("openai_responses", "box", "m")
SEALED: dict[str, Any] = {
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "Plan."}],
    "encrypted_content": "g" * 2**20,
    "format": "x",
}
RAW: dict[str, Any] = {
    "type": "reasoning",
    "content": [{"type": "reasoning_text", "text": "Hm"}],
}
CALL = ToolCall("c1", "view", "{}")
SENT_CALL = {
    "type": "function_call",
    "call_id": "c1",
    "name": "view",
    "arguments": "{}",
}


def thought(origin: Origin = HERE, **data: Any) -> ThinkingPart:
    return ThinkingPart("Plan.", ProviderData(origin, data))


def items(*parts: Part, replay: Replay | None = None) -> list[dict[str, Any]]:
    target = Target("m", facts=ModelFacts("m", replay=replay), origin=HERE)
    return assistant_items(parts, target, Aliases(spell_name), CallIds())


def said(text: str, **fields: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text, **fields}


def test_reasoning_goes_back_unchanged_before_what_it_led_to() -> None:
    turn = (thought(item=SEALED), TextPart("So."), thought(item=SEALED), CALL)
    assert items(*turn) == [SEALED, said("So."), SEALED, SENT_CALL]


@pytest.mark.parametrize("name", ["dialect", "upstream", "model"])
def test_reasoning_of_another_origin_is_left_out(name: str) -> None:
    other = Origin(**{"dialect": "openai_responses", "upstream": "box", "model": "m"}
                   | {name: "other"})  # fmt: skip
    foreign = thought(other, item=SEALED, phase="commentary")
    assert items(foreign, ThinkingPart("Hm"), CALL) == [SENT_CALL]


@pytest.mark.parametrize(
    "item",
    [
        {},
        {**SEALED, "type": "message"},
        {**SEALED, "summary": [7]},
        {**SEALED, "summary": [{"type": "summary_text"}]},
        {**SEALED, "content": "text"},
        {**SEALED, "encrypted_content": 7},
    ],
)
def test_damaged_reasoning_is_left_out(item: Any) -> None:
    assert items(thought(item=item, phase=7), CALL) == [SENT_CALL]


def test_fields_that_no_reasoning_has_are_left_out() -> None:
    more = {"id": "rs_1", "status": "completed", "role": "system", "signature": 7}
    forged = {**SEALED, **more, "summary": [{**SEALED["summary"][0], "role": "user"}]}
    assert items(thought(item=forged), CALL) == [SEALED, SENT_CALL]
    forged = {**RAW, **more, "content": [{**RAW["content"][0], "annotations": []}]}
    sent = items(thought(item=forged), CALL, replay=Replay.TOOL_TURNS)
    assert sent == [{**RAW, "summary": []}, SENT_CALL]


def test_reasoning_that_is_not_sealed_goes_back_where_models_want_it() -> None:
    assert items(thought(item=RAW), CALL) == [SENT_CALL]
    assert items(thought(item=RAW), CALL, replay=Replay.NEVER) == [SENT_CALL]
    sent = items(thought(item=RAW), CALL, replay=Replay.TOOL_TURNS)
    assert sent == [{**RAW, "summary": []}, SENT_CALL]


def test_phases_come_back_with_their_messages() -> None:
    turn = (
        thought(phase="commentary"), TextPart("I look."), CALL,
        thought(item=SEALED, phase="final_answer"), TextPart("So."), TextPart("Bye."),
    )  # fmt: skip
    assert items(*turn) == [
        said("I look.", phase="commentary"),
        SENT_CALL,
        SEALED,
        said("So.", phase="final_answer"),
        said("Bye."),
    ]


def test_a_phase_that_was_kept_beside_a_call_belongs_to_the_text_before_it() -> None:
    restored = thought(item=SEALED, phase="commentary")
    assert items(TextPart("I look."), restored, CALL) == [
        said("I look.", phase="commentary"),
        SEALED,
        SENT_CALL,
    ]
    assert items(restored, CALL) == [SEALED, SENT_CALL]
