"""Expectations of Responses where the recorded last event repeats no output.

The expectation was made by the SDK from the last event. ChatGPT's backend leaves its
output empty, and the SDK does not count a refusal as text: then the items that were
streamed say what a client must get. They are read here without byok's own code.
"""

import json
from collections.abc import Iterator
from typing import Any


def complete_expectation(row: dict[str, Any], body: bytes) -> dict[str, Any]:
    """Return a row that expects the items of its body if it expects nothing else."""
    expected = row.get("expected")
    if row["kind"] != "responses_stream" or not expected:
        return row
    if expected.get("text") or expected.get("tool_calls"):
        return row
    items = [*_items(body)]
    parts = [part for item in items for part in item.get("content") or ()]
    found = {
        "text": "".join(p.get("text") or p.get("refusal") or "" for p in parts),
        "tool_calls": [_call(i) for i in items if i.get("type") == "function_call"],
    }
    return {**row, "expected": {**expected, **found}}


def _items(body: bytes) -> Iterator[dict[str, Any]]:
    """Give the complete items of a stream; texts of reasoning stay as they were."""
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
