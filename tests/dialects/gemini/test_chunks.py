"""The chunks of Gemini's answer that are common, and those that are malformed."""

from typing import Any

import pytest

from byok.core.errors import UpstreamNotJson
from byok.dialects.answer_reader import read_error_body
from byok.dialects.gemini.answer import only_text, read_lines


def chunk(part: Any, **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": [part], "role": "model"}, **more}]}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (chunk({"text": "A"}), "A"),
        (chunk({"text": "A"}, index=0) | {"usageMetadata": {}}, "A"),
        (chunk({"text": "A"}, index=1), ""),
        (chunk({"text": "A"}, finishReason="STOP"), ""),
        (chunk({"text": "A"}, finishReason="STOP", index=0), ""),
        (chunk({"text": "A", "thought": True}), ""),
        (chunk({"text": 7}), ""),
        (chunk({"text": "A"}) | {"error": {}}, ""),
        ({"candidates": []}, ""),
        ([], ""),
        (None, ""),
    ],
)
def test_only_text_is_found_where_a_chunk_has_nothing_else(
    value: Any, text: str
) -> None:
    assert only_text(value) == text


def test_lines_without_blank_lines_between_them_are_read() -> None:
    wrong = ValueError("")
    assert read_lines(b'{"a":1}\n{"b":2}\n[DONE]', wrong) == [{"a": 1}, {"b": 2}]
    assert read_lines(b" [DONE] ", wrong) == []
    for data in (b"oops", b"oops\n{}"):
        with pytest.raises(UpstreamNotJson):
            read_lines(data, wrong)


def test_an_error_event_may_be_text() -> None:
    assert read_error_body(b'{"a":1}') == {"a": 1}
    assert read_error_body(b"too busy") == "too busy"
