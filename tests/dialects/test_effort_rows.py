"""The nearest effort after a refusal that names the accepted ones."""

from typing import Any

import pytest

from byok.dialects.error_bodies import refusal_of
from byok.dialects.remedies import (
    RefusedRequest,
    change_body,
    effort_row,
    find_remedy,
)

ROWS = {"effort": effort_row("reasoning.effort")}
OPENAI = (
    "Unsupported value: 'reasoning.effort' does not support 'minimal' with this model. "
    "Supported values are: 'none', 'low', 'medium', 'high', and 'xhigh'."
)


def after(effort: Any, message: str) -> Any:
    """The effort that is sent after a refusal; None where there is no remedy."""
    body = {"reasoning": {"effort": effort}} if effort else {}
    error = refusal_of({"error": {"message": message}}, 400)
    remedy = find_remedy(ROWS, RefusedRequest(body, error))
    if remedy is None:
        return None
    sent, _ = change_body(ROWS, body, [remedy])
    assert change_body(ROWS, {}, [remedy]) == ({}, ())
    return sent.get("reasoning", {}).get("effort", "")


@pytest.mark.parametrize(
    ("effort", "message", "sent"),
    [
        ("minimal", OPENAI, "low"),
        ("max", OPENAI, "xhigh"),
        ("max", "Unsupported value: 'max'. Supported values are: 'high'.", "high"),
        ("low", "`reasoning_effort` must be one of `none` or `default`", "none"),
        ("blue", OPENAI, ""),
        ("high", OPENAI, None),
        ("max", "Unsupported value: 'blue'. Supported values are: 'high'.", None),
        ("max", "reasoning.effort is not supported with this model.", None),
        ("max", "effort: supported values are: 1, 2", None),
        (None, OPENAI, None),
    ],
)
def test_the_nearest_effort_that_a_refusal_names(
    effort: Any, message: str, sent: Any
) -> None:
    assert after(effort, message) == sent
