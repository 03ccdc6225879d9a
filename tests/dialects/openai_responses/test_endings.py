"""Why a response ended, and how it failed."""

from typing import Any

import pytest

from byok.core.errors import UpstreamGarbled
from byok.core.events import FinishReason
from byok.dialects.openai_responses.answer import (
    check_protocol,
    failure_of,
    finish_reason,
    is_failure,
)

LONG = {"code": "context_length_exceeded", "message": "Too many tokens"}


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"response": {"status": "completed"}}, "stop"),
        ({"type": "response.incomplete"}, "length"),
        ({"response": {"status": "incomplete"}}, "length"),
        ({"response": {"incomplete_details": {"reason": "content_filter"}}},
         "content_filter"),
        ({"response": {"incomplete_details": {"reason": "other"}}}, "length"),
        ({"response": {"incomplete_details": {"reason": None}}}, "stop"),
        ({"response": 7}, "stop"),
    ],
)  # fmt: skip
def test_the_finish_reason(event: Any, reason: str) -> None:
    assert finish_reason(event, has_calls=False) == reason


def test_a_response_with_calls_ends_with_them() -> None:
    assert finish_reason({}, has_calls=True) is FinishReason.TOOL_CALLS


@pytest.mark.parametrize(
    "event",
    [{"response": {"error": LONG}}, {"error": LONG}, {"type": "error", **LONG}],
)
def test_the_error_of_a_failure_is_found(event: Any) -> None:
    assert failure_of(event).code == "context_length"


def test_a_failure_may_have_another_name() -> None:
    assert is_failure({"status": "cancelled"})
    assert is_failure({"error": LONG})
    assert not is_failure({"status": []})
    assert not is_failure({"error": None})


def test_another_protocol_is_refused() -> None:
    check_protocol({"output": []})
    with pytest.raises(UpstreamGarbled, match="Chat Completions"):
        check_protocol({"choices": []})
