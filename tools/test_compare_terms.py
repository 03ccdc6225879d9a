"""Expectations of the native APIs in the terms of Chat Completions."""

import json
from typing import Any

import pytest

from tools.compare_terms import (
    answers_in,
    complete_expectation,
    in_common_terms,
    is_empty,
    without_usage,
)


@pytest.mark.parametrize(
    ("kind", "expected", "terms"),
    [
        (
            "anthropic_stream",
            {
                "finish_reason": "max_tokens",
                "usage": {
                    "input_tokens": 3,
                    "cache_read_input_tokens": 40,
                    "cache_creation_input_tokens": None,
                    "output_tokens": 5,
                },
            },
            ("length", 43, 5),
        ),
        (
            "gemini_stream",
            {
                "finish_reason": "STOP",
                "usage": {"prompt_token_count": 7, "thoughts_token_count": 2},
            },
            ("STOP", 7, 2),
        ),
        (
            "responses_stream",
            {
                "finish_reason": "incomplete",
                "incomplete": {"reason": "max_output_tokens"},
                "usage": {"input_tokens": 1, "output_tokens": 9},
            },
            ("length", 1, 9),
        ),
    ],
)
def test_expectations_are_graded_in_the_words_of_compare(
    kind: str, expected: dict[str, Any], terms: tuple[str, int, int]
) -> None:
    graded = in_common_terms({"kind": kind, "expected": expected})["expected"]
    usage = graded["usage"]
    assert terms == (
        graded["finish_reason"], usage["prompt_tokens"], usage["completion_tokens"],
    )  # fmt: skip


def test_chat_completions_and_items_without_expectation_stay_as_they_are() -> None:
    for row in (
        {"kind": "chat_stream", "expected": {"finish_reason": "stop"}},
        {"kind": "gemini_stream", "expected": None},
    ):
        assert in_common_terms(row) is row


def test_token_counts_of_several_answers_in_one_recording_are_not_graded() -> None:
    start = b'data: {"type":"message_start","message":{}}\n\n'
    assert answers_in(b"event: message_start\n" + start + start) == 2
    row = {"kind": "anthropic_stream", "expected": {"usage": {"input_tokens": 3}}}
    assert in_common_terms(without_usage(row))["expected"]["usage"] is None
    assert without_usage({"expected": None}) == {"expected": None}
    assert is_empty({"expected": {"text": "", "tool_calls": []}})
    assert not is_empty({"expected": {"tool_calls": [{}]}})


def test_arguments_are_graded_where_an_sdk_keeps_no_text_of_them() -> None:
    calls = [{"arguments": {"a": 1}}, {"arguments": {}, "arguments_raw": "{ }"}]
    row = {"kind": "anthropic_stream", "expected": {"tool_calls": calls}}
    graded = in_common_terms(row)["expected"]["tool_calls"]
    assert [call["arguments_raw"] for call in graded] == ['{"a": 1}', "{ }"]


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
