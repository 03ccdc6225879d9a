"""Prompt caching: points, keys and headers, for those who want to be asked."""

from typing import Any

import pytest

from byok.core.chat import ChatRequest
from byok.dialects.base import Target
from byok.dialects.openai_chat.quirks import DEFAULT, QUIRKS
from byok.dialects.openai_chat.request import add_caching

POINT = {"type": "ephemeral"}


def body(*roles: str) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": role} for role in roles]}


def points(sent: dict[str, Any]) -> list[int]:
    """Return the places of the messages that end with a cache point."""
    return [
        place
        for place, message in enumerate(sent["messages"])
        if isinstance(message["content"], list)
        and message["content"][-1].get("cache_control") == POINT
    ]


def test_cache_control_of_claude_is_at_the_top_and_behind_the_system() -> None:
    sent = body("system", "user", "assistant", "user")
    target = Target("anthropic/claude-opus-5")
    assert add_caching(sent, ChatRequest(()), target, QUIRKS["openrouter"]) == {}
    assert sent["cache_control"] == POINT
    assert points(sent) == [0]


def test_a_long_cache_is_asked_for_in_each_vendors_words() -> None:
    sent = body("system", "user")
    claude = Target("anthropic/claude-opus-5", long_cache=True)
    add_caching(sent, ChatRequest(()), claude, QUIRKS["openrouter"])
    assert sent["cache_control"] == {**POINT, "ttl": "1h"}
    sent = body("user")
    chat = ChatRequest((), conversation="c")
    add_caching(sent, chat, Target("gpt-5.6", long_cache=True), QUIRKS["openai"])
    assert sent["prompt_cache_retention"] == "24h"


def test_cache_control_of_dashscope_is_behind_the_system_and_at_the_end() -> None:
    sent = body("system", "user", "assistant", "user")
    add_caching(sent, ChatRequest(()), Target("qwen3-max"), QUIRKS["dashscope"])
    assert "cache_control" not in sent
    assert points(sent) == [0, 3]


def test_cache_point_keeps_the_parts_of_a_message() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    sent = {"messages": [{"role": "user", "content": parts}]}
    add_caching(sent, ChatRequest(()), Target("q"), QUIRKS["dashscope"])
    assert sent["messages"][0]["content"] == [
        parts[0],
        {**parts[1], "cache_control": POINT},
    ]


@pytest.mark.parametrize("content", ["", None, []])
def test_cache_point_needs_content(content: Any) -> None:
    sent = {"messages": [{"role": "assistant", "content": content}]}
    add_caching(sent, ChatRequest(()), Target("q"), QUIRKS["dashscope"])
    assert sent == {"messages": [{"role": "assistant", "content": content}]}


@pytest.mark.parametrize("vendor", ["openrouter", "openai", "xai"])
def test_caching_is_not_asked_for_where_the_user_wants_none(vendor: str) -> None:
    sent = body("system", "user")
    chat, target = ChatRequest((), conversation="c-1"), Target("claude", cache=False)
    assert add_caching(sent, chat, target, QUIRKS[vendor]) == {}
    assert sent == body("system", "user")


def test_cache_key_is_a_field_or_a_header() -> None:
    chat = ChatRequest((), conversation="c-1")
    keyed, headed, plain = body("user"), body("user"), body("user")
    assert add_caching(keyed, chat, Target("m"), QUIRKS["openai"]) == {}
    assert keyed["prompt_cache_key"]
    headers = add_caching(headed, chat, Target("m"), QUIRKS["xai"])
    assert headers == {"x-grok-conv-id": keyed["prompt_cache_key"]}
    assert add_caching(plain, chat, Target("m"), DEFAULT) == {}
    assert headed == plain == body("user")
