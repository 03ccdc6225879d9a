"""What items carry, whatever a server makes of them."""

from typing import Any

import pytest
from hypothesis import given, settings

from byok.dialects.openai_responses.request import (
    citations,
    foreign_tool,
    message_text,
    reasoning_data,
    reasoning_text,
)
from tests.fakes.values import OBJECTS


@pytest.mark.parametrize(
    ("item", "kept"),
    [
        ({"type": "reasoning", "id": "rs", "status": None, "encrypted_content": "g",
          "summary": [], "content": None, "format": "x"},
         {"type": "reasoning", "encrypted_content": "g", "summary": [], "format": "x"}),
        ({"summary": [{"text": "a"}]}, {}),
        ({"content": [{"text": "a"}]}, {"content": [{"text": "a"}]}),
    ],
)  # fmt: skip
def test_what_comes_back_of_reasoning(item: Any, kept: Any) -> None:
    assert reasoning_data(item) == kept


def test_texts_of_items() -> None:
    summary = {"summary": [{"text": "a"}, 7, {"text": ""}, {"text": "b"}]}
    assert reasoning_text(summary) == "a\nb"
    assert reasoning_text({"summary": [], "content": [{"text": "c"}]}) == "c"
    assert message_text({"content": [{"text": "a"}, {"refusal": "b"}, 7]}) == "ab"


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ({"type": "local_shell_call"}, "local_shell"),
        ({"type": "shell_call"}, "shell"),
        ({"type": "shell_call", "environment": {"type": "local"}}, "shell"),
        ({"type": "shell_call", "environment": {"type": "container"}}, ""),
        ({"type": "custom_tool_call", "name": "sql"}, "sql"),
        ({"type": "custom_tool_call"}, "custom"),
        ({"type": "tool_search_call", "execution": "client"}, "tool_search"),
        ({"type": "tool_search_call", "execution": "server"}, ""),
        ({"type": "web_search_call"}, ""),
        ({}, ""),
    ],
)
def test_tools_that_the_client_would_have_to_run(item: Any, name: str) -> None:
    assert foreign_tool(item) == name


@settings(max_examples=50)
@given(OBJECTS)
def test_any_item_is_read(item: dict[str, Any]) -> None:
    whole = {"content": item.get("content", [item]), **item, "annotations": [item]}
    assert isinstance(message_text(whole), str)
    assert isinstance(reasoning_text({"summary": [whole]}), str)
    assert isinstance(citations({"content": [whole, item]}), list)
