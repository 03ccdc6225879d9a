"""Recorded answers of Gemini and Vertex AI, as Google's own SDK reads them."""

import json
from pathlib import Path
from typing import Any

from byok.core.events import StreamEvent, TextDelta, ThinkingDelta, ToolCallDelta, Usage
from byok.dialects.base import UpstreamRequest
from byok.dialects.gemini.dialect import Gemini
from tests.fakes.replay import bytes_of, recorded


def read(raw: bytes) -> list[StreamEvent]:
    stage = Gemini().reader(UpstreamRequest("", {}))
    return [*stage.feed(raw), *stage.flush()]


def joined(events: list[StreamEvent], kind: type[TextDelta | ThinkingDelta]) -> str:
    return "".join(e.text for e in events if isinstance(e, kind))


def calls(events: list[StreamEvent]) -> list[tuple[str, Any]]:
    found = [e for e in events if isinstance(e, ToolCallDelta)]
    return [(e.name, json.loads(e.arguments)) for e in found]


def test_gemini_recordings_are_read_as_by_the_sdk(shared: Path) -> None:
    read_so_far = 0
    for item in recorded(shared, "gemini_stream"):
        expected, raw = item["expected"], bytes_of(shared, item)
        if not expected or b"partialArgs" in raw:  # which the SDK does not join
            continue
        events = read(raw)
        assert joined(events, TextDelta) == (expected["text"] or ""), item["id"]
        assert joined(events, ThinkingDelta) == (expected["reasoning"] or ""), item[
            "id"
        ]
        wanted = [(c["name"], c["arguments"]) for c in expected["tool_calls"]]
        assert calls(events) == wanted, item["id"]
        (usage,) = [e for e in events if isinstance(e, Usage)]
        counts = expected["usage"]
        assert usage.reasoning_tokens == (counts.get("thoughts_token_count") or 0)
        read_so_far += 1
    assert read_so_far > 100
