"""Finish reasons: the strictest of several counts, and failures are raised."""

import pytest

from byok.core.errors import UpstreamGarbled
from byok.core.events import FinishReason
from byok.dialects.openai_chat.chunks import stricter_finish

STOP, LENGTH, TOOLS = FinishReason.STOP, FinishReason.LENGTH, FinishReason.TOOL_CALLS


@pytest.mark.parametrize(
    ("known", "reason", "counts"),
    [
        (None, "stop", STOP),
        (None, "", None),
        (STOP, None, STOP),
        (None, "never heard of", STOP),
        (LENGTH, "stop", LENGTH),
        (STOP, "TOOL_CALLS", TOOLS),
    ],
)
def test_finish_reason_that_is_stricter_counts(
    known: FinishReason | None, reason: object, counts: FinishReason | None
) -> None:
    assert stricter_finish(known, reason) is counts


def test_native_finish_reason_counts_only_as_a_limit() -> None:
    assert stricter_finish(STOP, "tool_use", only_length=True) is STOP
    assert stricter_finish(STOP, "MAX_TOKENS", only_length=True) is LENGTH


def test_finish_reason_of_a_failure_is_an_error() -> None:
    with pytest.raises(UpstreamGarbled, match="network_error"):
        stricter_finish(None, "network_error")
