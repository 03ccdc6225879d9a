"""Refusals of Responses and what helps against them."""

from typing import Any

import pytest

from byok.dialects.error_bodies import refusal_of
from byok.dialects.openai_responses.remedies import REMEDIES
from byok.dialects.remedies import RefusedRequest, Remedy, change_body, find_remedy

USER = {"type": "message", "role": "user", "content": "Hi?"}
CALL = {"type": "function_call", "call_id": "c1", "name": "view", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "out"}
BODY: dict[str, Any] = {
    "model": "m",
    "input": [USER],
    "stream": True,
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "reasoning": {"effort": "max", "summary": "auto"},
    "temperature": 0.5,
    "max_output_tokens": 99_999,
    "prompt_cache_key": "k",
    "parallel_tool_calls": False,
}


def sealed(text: str) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [], "encrypted_content": text}


def found(
    body: Any, message: str, status: int = 400, dialects: tuple[str, ...] = ()
) -> Remedy | None:
    error = refusal_of({"error": {"message": message}}, status)
    return find_remedy(REMEDIES, RefusedRequest(body, error, dialects=dialects))


def after(body: Any, message: str, status: int = 400) -> dict[str, Any]:
    """The body that is sent after a refusal."""
    remedy = found(body, message, status)
    assert remedy
    return change_body(REMEDIES, body, [remedy])[0]


@pytest.mark.parametrize(
    ("message", "gone"),
    [
        ("Unsupported parameter: 'temperature' is not supported with this model.",
         "temperature"),
        ("Encrypted content is not supported with this model.", "include"),
        ("Unknown parameter: 'include'.", "include"),
        ("Unsupported parameter: 'reasoning' is not supported.", "reasoning"),
        ("Your organization must be verified to stream this model.", "stream"),
    ],
)  # fmt: skip
def test_refused_parameters_are_dropped(message: str, gone: str) -> None:
    assert after(BODY, message) == {k: v for k, v in BODY.items() if k != gone}


@pytest.mark.parametrize(
    ("message", "reasoning"),
    [
        ("Your organization must be verified to generate reasoning summaries.",
         {"effort": "max"}),
        ("Unsupported parameter: 'reasoning.summary' is not supported.",
         {"effort": "max"}),
        ("Unsupported parameter: 'reasoning.effort' is not supported.",
         {"summary": "auto"}),
        ("'reasoning.effort' does not support 'max'. Supported values are: 'low'.",
         {"effort": "low", "summary": "auto"}),
    ],
)  # fmt: skip
def test_refused_parts_of_reasoning_are_changed(message: str, reasoning: Any) -> None:
    assert after(BODY, message)["reasoning"] == reasoning


def test_refused_instructions_become_an_item() -> None:
    text = "Argument not supported: instructions"
    sent = after({**BODY, "instructions": "Be exact."}, text)
    assert sent["input"][0]["content"] == "Be exact."
    assert "instructions" not in sent
    assert found({**BODY, "instructions": "x", "input": "Hi?"}, text) is None


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("The encrypted content gAAA...c90= could not be verified.", 400),
        ("Item 'rs_1' of type 'reasoning' was provided without its required following "
         "item.", 400),
        ("Item 'fc_1' of type 'function_call' was provided without its required "
         "'reasoning' item: 'rs_1'.", 400),
        ("Item with id 'rs_1' not found. Items are not persisted when `store` is set "
         "to false.", 404),
    ],
)  # fmt: skip
def test_refused_reasoning_is_left_out_of_that_conversation(
    message: str, status: int
) -> None:
    items = [USER, sealed("a"), CALL, RESULT, sealed("b"), CALL, RESULT]
    old = {**BODY, "input": items}
    remedy = found(old, message, status, ("openai_chat",))
    assert remedy
    grown = {**BODY, "input": [*items, sealed("c"), CALL, RESULT]}
    sent, _ = change_body(REMEDIES, grown, [remedy])
    assert sent["input"] == [USER, *(CALL, RESULT) * 2, sealed("c"), CALL, RESULT]
    other = {**BODY, "input": [USER, sealed("d"), CALL, RESULT]}
    assert change_body(REMEDIES, other, [remedy]) == (other, ())
    assert found({**BODY, "input": [USER]}, message) is None
