"""Expectations from the items of a stream."""

import json
from typing import Any

from tools.compare_items import complete_expectation


def event(item: Any, kind: str = "response.output_item.done") -> bytes:
    return b"data: " + json.dumps({"type": kind, "item": item}).encode() + b"\n\n"


BODY = b"".join(
    [
        event({"type": "message", "content": []}, "response.output_item.added"),
        event({"type": "reasoning", "content": [{"text": "Hm"}]}),
        event({"type": "message", "content": [{"text": "a"}, {"refusal": "b"}]}),
        event({"type": "function_call", "name": "f", "arguments": '{"x": 1}'}),
        b"data: [DONE]\n\n",
    ]
)


def row(**expected: Any) -> dict[str, Any]:
    return {"kind": "responses_stream", "expected": expected}


def test_an_empty_expectation_is_that_of_the_items() -> None:
    found = complete_expectation(row(text=None, usage={}), BODY)["expected"]
    assert found["text"] == "ab"
    assert found["usage"] == {}
    (call,) = found["tool_calls"]
    assert (call["name"], call["arguments"]) == ("f", {"x": 1})


def test_other_expectations_stay() -> None:
    for given in (row(text="c"), row(tool_calls=[{}]), {**row(), "expected": None}):
        assert complete_expectation(given, BODY) == given
    other = {**row(text=""), "kind": "chat_stream"}
    assert complete_expectation(other, BODY) == other
