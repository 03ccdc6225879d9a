"""Convert the expectations of recordings to the terms that compare.py knows.

compare.py grades the finish reasons and token counts of Chat Completions. Other APIs
have other names for them, which would not be graded, or fail although byok is right.

The expectations were written by the SDKs, for Responses from the last event. ChatGPT's
backend leaves that event's output empty, and the SDK does not count a refusal as text:
then the streamed items are the expectation, read here without byok's own code.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

_FINISH = {
    "max_tokens": "length",
    "MAX_TOKENS": "length",
    "model_context_window_exceeded": "length",
    "max_output_tokens": "length",
    "refusal": "content_filter",
    "SAFETY": "content_filter",
}
_STARTS = re.compile(rb'"type": ?"message_start"')
# The counts whose sum is that of the prompt, and that of the answer, by kind.
_PROMPT = {
    "anthropic_stream": (
        "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
    ),
    "responses_stream": ("input_tokens",),
    "gemini_stream": ("prompt_token_count", "tool_use_prompt_token_count"),
}  # fmt: skip
_ANSWER = {
    "anthropic_stream": ("output_tokens",),
    "responses_stream": ("output_tokens",),
    "gemini_stream": ("candidates_token_count", "thoughts_token_count"),
}


def in_common_terms(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the manifest with finish reason and usage in OpenAI's terms."""
    kind, expected = row["kind"], row.get("expected")
    if not expected or kind not in _PROMPT:
        return row
    reason = expected.get("incomplete") or expected.get("finish_reason")
    if isinstance(reason, dict):
        reason = reason.get("reason")
    usage = expected.get("usage")
    counts = usage and {
        "prompt_tokens": sum(usage.get(name) or 0 for name in _PROMPT[kind]),
        "completion_tokens": sum(usage.get(name) or 0 for name in _ANSWER[kind]),
    }
    terms = {
        "finish_reason": _FINISH.get(reason, reason),
        "usage": counts,
        "tool_calls": [_with_raw(call) for call in expected.get("tool_calls") or ()],
    }
    return {**row, "expected": {**expected, **terms}}


def _with_raw(call: dict[str, Any]) -> dict[str, Any]:
    """Return a call with its arguments as text, which Gemini sends as an object."""
    arguments = call.get("arguments")
    if call.get("arguments_raw") is not None or arguments is None:
        return call
    return {
        **call,
        "arguments_raw": json.dumps(arguments),
        "arguments_valid_json": True,
    }


def answers_in(body: bytes) -> int:
    """Count the answers of Anthropic's API in a recording, as some have several."""
    return len(_STARTS.findall(body))


def is_empty(row: dict[str, Any]) -> bool:
    """Tell whether an answer is empty: byok asks again, and counts both answers."""
    expected = row.get("expected") or {}
    return not any(expected.get(n) for n in ("text", "reasoning", "tool_calls"))


def without_usage(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without token counts, which belong to another answer."""
    expected = row.get("expected")
    return {**row, "expected": {**expected, "usage": None}} if expected else row


def complete_expectation(row: dict[str, Any], body: bytes) -> dict[str, Any]:
    """Return a row that expects the items of its body if it expects nothing else."""
    expected = row.get("expected")
    if row["kind"] != "responses_stream" or not expected:
        return row
    if expected.get("text") or expected.get("tool_calls"):
        return row
    items = [*_items(body)]
    parts = [part for item in items for part in item.get("content") or ()]
    streamed = {
        "text": "".join(p.get("text") or p.get("refusal") or "" for p in parts),
        "tool_calls": [_call(i) for i in items if i.get("type") == "function_call"],
    }
    return {**row, "expected": {**expected, **streamed}}


def _items(body: bytes) -> Iterator[dict[str, Any]]:
    """Yield the complete messages and calls of a stream, without reasoning."""
    for line in body.splitlines():
        if line.startswith(b"data: {"):
            event = json.loads(line[6:])
            item = event.get("item") or {}
            is_done = event.get("type") == "response.output_item.done"
            if is_done and item.get("type") in ("message", "function_call"):
                yield item


def _call(item: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": item["name"],
        "arguments": json.loads(item["arguments"]),
        "arguments_raw": item["arguments"],
        "arguments_valid_json": True,
    }
