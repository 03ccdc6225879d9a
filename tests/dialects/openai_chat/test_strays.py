"""What comes where a part of a chat completion belongs, and is none."""

from typing import Any

import pytest
from hypothesis import given

from byok.core.errors import UpstreamGarbled
from byok.dialects.openai_chat.chunks import check_protocol, is_error
from tests.fakes.values import VALUES


@pytest.mark.parametrize(
    ("chunk", "error"),
    [
        ({"object": "error"}, True),
        ({"detail": "No"}, True),
        ({"errors": ["No"]}, True),
        ({"msg": "No"}, True),
        ({"base_resp": {"status_code": 1}}, True),
        ({"base_resp": {"status_code": 1}, "choices": [{}]}, True),
        ({"base_resp": {"status_code": 0}}, False),
        ({"base_resp": None}, False),
        ({"message": {"content": "a"}}, False),
        ({"message": "a", "usage": {"prompt_tokens": 1}}, False),
        ({"id": "x", "object": "chat.completion.chunk", "choices": []}, False),
        ({}, False),
    ],
)
def test_stray_error_is_recognised_by_its_fields(
    chunk: dict[str, Any], *, error: bool
) -> None:
    assert is_error(chunk) is error


@pytest.mark.parametrize(
    "chunk",
    [
        {"choices": [], "type": "message_start"},
        {"type": "ping"},
        {"type": "completion"},
        {"type": ["response.created"]},
        {"done": True},
        {"id": "x", "object": "chat.completion"},
        [],
        [[]],
        "message",
    ],
)
def test_stray_check_accepts_a_chat_completion(chunk: Any) -> None:
    check_protocol(chunk)


@given(VALUES)
def test_stray_check_takes_any_value(value: Any) -> None:
    try:
        check_protocol(value)
    except UpstreamGarbled as error:
        assert error.code == "upstream_protocol"
    if isinstance(value, dict):
        assert is_error(value) in (True, False)
