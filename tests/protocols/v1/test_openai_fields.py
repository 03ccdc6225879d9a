"""Fields that OpenAI's protocols share: whether tools are called, what form."""

from typing import Any

import pytest

from byok.core.chat import JsonAnswer, ToolUse
from byok.core.errors import BadRequest
from byok.protocols.v1.fields import read_format, read_use, write_source


def test_openai_fields_use_of_tools() -> None:
    assert read_use(None) is ToolUse.AUTO
    assert read_use("required") is ToolUse.REQUIRED
    wrong: list[Any] = ["any", 1, []]
    for choice in wrong:
        with pytest.raises(BadRequest, match="tool_choice"):
            read_use(choice)


def test_openai_fields_format_of_the_answer() -> None:
    schema = {"type": "object"}
    assert read_format({}) is read_format({"type": "text"}) is None
    assert read_format({"type": "json_object"}) == JsonAnswer()
    nested = {"name": "x", "schema": schema}
    kind = {"type": "json_schema"}
    assert read_format({**kind, "json_schema": nested}) == JsonAnswer(schema, "x")
    assert read_format({**kind, "schema": schema}) == JsonAnswer(schema)
    with pytest.raises(BadRequest, match="grammar"):
        read_format({"type": "grammar"})


def test_openai_fields_source_has_a_title() -> None:
    assert write_source("https://a", "")["title"] == "https://a"
    assert write_source("https://a", "A")["title"] == "A"
