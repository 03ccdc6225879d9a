"""Fields that vendors spell in several ways, and the usual chunk the short way."""

from typing import Any

import pytest

from byok.dialects.openai_chat.chunks import (
    is_whole_message,
    only_delta,
    reasoning,
    string,
    texts,
)


def chunk(content: Any = "Hi", **choice: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": content}, **choice}]}


@pytest.mark.parametrize(
    "plain",
    [
        chunk(),
        chunk(finish_reason=None, logprobs=None),
        {**chunk(), "usage": None, "id": "x", "obfuscation": "abc"},
    ],
)
def test_only_delta_takes_the_fast_path(
    plain: dict[str, Any],
) -> None:
    assert only_delta(plain) == {"content": "Hi"}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(chunk(finish_reason="stop"), id="the end"),
        pytest.param(chunk(native_finish_reason="length"), id="the real end"),
        pytest.param(chunk(usage={"prompt_tokens": 1}), id="usage in the choice"),
        pytest.param(chunk(index=1), id="another choice"),
        pytest.param({**chunk(), "usage": {"a": 1}}, id="usage"),
        pytest.param({**chunk(), "x_groq": {"usage": {}}}, id="groq's usage"),
        pytest.param({**chunk(), "error": {"message": "no"}}, id="an error"),
        pytest.param({"choices": chunk()["choices"] * 2}, id="two choices"),
        pytest.param({"choices": [{"delta": None}]}, id="no delta"),
        pytest.param({"choices": []}, id="no choice"),
        pytest.param({"choices": [{"message": {"content": "a"}}]}, id="whole"),
        pytest.param({"choices": {"delta": {"content": "a"}}}, id="an object"),
        pytest.param({"choices": ["a"]}, id="a string"),
        pytest.param({}, id="nothing"),
        pytest.param([], id="an array"),
        pytest.param("choices", id="no object"),
        pytest.param(None, id="null"),
    ],
)
def test_only_delta_leaves_other_chunks_to_the_slow_path(other: Any) -> None:
    assert only_delta(other) is None


@pytest.mark.parametrize(
    ("part", "text", "field"),
    [
        ({"reasoning_content": "a", "reasoning": "b"}, "a", "reasoning_content"),
        ({"reasoning_content": "", "reasoning": "b"}, "b", "reasoning"),
        (
            {"reasoning_details": [{"text": "a"}, {"summary": "b"}, 1]},
            "ab",
            "reasoning_details",
        ),
        ({"reasoning": 1}, "", ""),
        ({"reasoning": None, "thinking": "c"}, "c", "thinking"),
        ({"thinking": [{"text": "c"}]}, "c", "thinking"),
        ({"reasoning_text": "d", "reasoning_opaque": "x"}, "d", "reasoning_text"),
        ({}, "", ""),
    ],
)
def test_reasoning_in_two_fields_is_read_once(
    part: dict[str, Any], text: str, field: str
) -> None:
    assert reasoning(part) == (text, field)


EMPTY = {"role": "assistant", "content": "", "tool_calls": None}


@pytest.mark.parametrize(
    ("message", "delta", "whole"),
    [
        ({"content": "a"}, None, True),
        (EMPTY, None, True),
        ({"content": "a"}, {}, True),
        ({"content": "a"}, EMPTY, True),
        ({"tool_calls": [{}]}, EMPTY, True),
        (EMPTY, EMPTY, False),
        ({"content": "a"}, {"content": "a"}, False),
        ({"content": "a"}, {"tool_calls": [{}]}, False),
        (None, EMPTY, False),
        ("a", None, False),
    ],
)
def test_whole_message_is_told_from_the_text_so_far(
    message: Any, delta: Any, *, whole: bool
) -> None:
    assert is_whole_message(message, delta) is whole


@pytest.mark.parametrize(
    ("value", "alone", "within"),
    [("a", "a", "a"), (1, "", ""), (None, "", ""), ([{"text": "b"}, {}], "", "b")],
)
def test_text_field_with_another_type_is_empty(
    value: Any, alone: str, within: str
) -> None:
    assert (string(value), texts(value)) == (alone, within)
