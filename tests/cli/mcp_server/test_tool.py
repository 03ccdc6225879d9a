"""The tool: what it is told to agents, what it asks, what it answers."""

from typing import Any

import mcp_types
import pytest

from byok.cli.mcp_server.server import LONGEST, NAME, TOOL, call
from byok.core.errors import ByokError


class Asks:
    def __init__(self, answer: str | Exception) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def retrieve(self, question: str) -> str:
        self.asked.append(question)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def text_of(result: mcp_types.CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, mcp_types.TextContent)
    return content.text


def test_the_tool_tells_an_agent_how_to_ask() -> None:
    assert TOOL.name == "codebase-retrieval"
    assert TOOL.input_schema["required"] == ["information_request"]
    for word in ("natural language", "English", "identifiers"):
        assert word in (TOOL.description or "")


async def test_mcp_tool_answer_is_the_text_alone() -> None:
    asks = Asks("Path: a.py\n")
    result = await call(asks, NAME, {"information_request": "where"})
    assert (text_of(result), result.is_error) == ("Path: a.py\n", False)
    assert asks.asked == ["where"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (None, "must be a text"),
        ({}, "must be a text"),
        ({"information_request": ""}, "must be a text"),
        ({"information_request": " \n"}, "must be a text"),
        ({"information_request": 5}, "must be a text"),
        ({"information_request": ["a"]}, "must be a text"),
        ({"information_request": "a", "path": "/etc/passwd"}, "'path'"),
        ({"information_request": "a", "k" * 10_000: 1}, "Unknown argument"),
        ({"information_request": "x" * 10**6}, f"{LONGEST:,} characters"),
    ],
    ids=lambda value: repr(value)[:50],
)
@pytest.mark.case("B84")
async def test_mcp_tool_wrong_arguments_are_a_result_that_says_so(
    arguments: dict[str, Any] | None, word: str
) -> None:
    asks = Asks("")
    result = await call(asks, NAME, arguments)
    assert result.is_error
    assert word in text_of(result)
    assert len(text_of(result)) < 300
    assert asks.asked == []


async def test_another_tool_is_unknown() -> None:
    result = await call(Asks(""), "rm", {})
    assert result.is_error
    assert "Unknown tool 'rm'" in text_of(result)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ByokError("No.", hint="Do this."), "No. Do this."),
        (ValueError("secret"), "Internal error"),
        (OSError(30, "Read-only file system", "/a"), "/a: Read-only file system."),
    ],
    ids=repr,
)
async def test_mcp_tool_failure_is_a_result_too(error: Exception, words: str) -> None:
    result = await call(Asks(error), NAME, {"information_request": "a"})
    assert result.is_error
    assert words in text_of(result)
    assert "secret" not in text_of(result)
