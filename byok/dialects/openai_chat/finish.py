"""Finish reasons of Chat Completions, and which of several counts."""

from typing import Any

from byok.dialects.openai_chat.strays import FAILED
from byok.errors import UpstreamGarbled
from byok.events import FinishReason

WINDOW_EXCEEDED = "model_context_window_exceeded"  # of Z.ai
_FINISH = {
    "stop": FinishReason.STOP,
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "eos": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "max_output_tokens": FinishReason.LENGTH,
    WINDOW_EXCEEDED: FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "tool_use": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
    "safety": FinishReason.CONTENT_FILTER,
    "sensitive": FinishReason.CONTENT_FILTER,
}
# If there are several finish reasons, the one with the highest weight counts.
_WEIGHT = {
    FinishReason.STOP: 0,
    FinishReason.TOOL_CALLS: 1,
    FinishReason.CONTENT_FILTER: 2,
    FinishReason.LENGTH: 3,
}


def stricter_finish(
    known: FinishReason | None, reason: Any, *, only_length: bool = False
) -> FinishReason | None:
    """Return the finish reason that counts after one more was read.

    With `only_length`, only a reached limit counts.

    Raises:
        UpstreamGarbled: the reason is that the upstream failed.
    """
    if not isinstance(reason, str) or not reason:
        return known
    if reason.lower() in FAILED:
        raise UpstreamGarbled(
            f"it broke off its answer ({reason}).",
            code="upstream_cut",
            hint="Try again.",
            retryable=True,
        )
    found = _FINISH.get(reason.lower(), FinishReason.STOP)
    if only_length and found is not FinishReason.LENGTH:
        return known
    if known is None or _WEIGHT[found] > _WEIGHT[known]:
        return found
    return known
