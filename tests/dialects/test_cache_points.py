"""Cache points that a host refuses, and the key of a conversation."""

from typing import Any

import pytest

from byok.core.chat import ChatRequest, Message, Role, ToolCall, ToolResult
from byok.dialects.base import DIALECTS, Target, write_request
from byok.dialects.cache_points import prompt_cache_key
from byok.dialects.error_bodies import refusal_of
from byok.dialects.remedies import RefusedRequest, Remedy, find_remedy
from tests.fakes.messages_api import assistant, said, user

CALLS = (ToolCall("a", "view", "{}"), ToolCall("b", "view", "{}"))
RESULTS = [Message(Role.TOOL, (ToolResult(c.id, c.name, "ok"),)) for c in CALLS]
CHAT = ChatRequest(
    (said(Role.SYSTEM, "x"), user("?"), assistant(*CALLS), *RESULTS), conversation="c"
)
BOTH = pytest.mark.parametrize(
    ("dialect", "vendor"), [("anthropic", ""), ("openai_chat", "openrouter")]
)


def written(
    dialect: str, vendor: str, *made: Remedy, **target: Any
) -> tuple[dict[str, Any], Any]:
    """Return a body, and how to find the remedy for a refusal of it."""
    codec = DIALECTS[dialect](vendor)
    chat, sent = write_request(codec, CHAT, Target("claude", **target), made)

    def find(text: str) -> Remedy:
        error = refusal_of({"error": {"message": text}}, 400)
        refused = RefusedRequest(sent.body, error, known=made, chat=chat)
        remedy = find_remedy(codec.remedies, refused)
        assert remedy
        return remedy

    return sent.body, find


def points(body: dict[str, Any]) -> list[str]:
    """Return the texts and results behind which a point is, and whether one is atop."""
    blocks = [*body.get("system", ()), *body.get("tools", ())]
    for message in body["messages"]:
        blocks += message["content"] if isinstance(message["content"], list) else []
    marked = [b.get("text") or b["content"] for b in blocks if "cache_control" in b]
    return [*(["top"] if "cache_control" in body else []), *marked]


@BOTH
def test_only_the_cache_points_that_are_refused_are_taken_away(
    dialect: str, vendor: str
) -> None:
    body, find = written(dialect, vendor)
    assert points(body) == ["top", "x"]
    first = find("cache_control: Extra inputs are not permitted")
    body, find = written(dialect, vendor, first)
    assert points(body) == ["x", "?", "ok"]
    second = find("messages.2.content.0.cache_control: Extra inputs are not permitted")
    body, find = written(dialect, vendor, first, second)
    left = [] if dialect == "openai_chat" else ["x"]  # there it is a message, too
    assert points(body) == left
    if left:
        third = find("Unknown field: cache_control")
        body, _ = written(dialect, vendor, first, second, third)
    assert "cache_control" not in str(body)


@BOTH
def test_where_an_hour_is_refused_the_points_stay_without_it(
    dialect: str, vendor: str
) -> None:
    body, find = written(dialect, vendor, long_cache=True)
    assert str(body).count("'ttl': '1h'") == 2
    remedy = find(
        "system.0.cache_control.ephemeral.ttl: Extra inputs are not permitted"
    )
    body, _ = written(dialect, vendor, remedy, long_cache=True)
    assert body == written(dialect, vendor)[0]


@BOTH
def test_points_that_replace_the_one_at_the_top_last_as_long(
    dialect: str, vendor: str
) -> None:
    _, find = written(dialect, vendor, long_cache=True)
    remedy = find("cache_control: Extra inputs are not permitted")
    body, _ = written(dialect, vendor, remedy, long_cache=True)
    assert str(body).count("'ttl': '1h'") == len(points(body)) == 3


@pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses"])
def test_a_refused_time_of_a_cache_is_left_out_alone(dialect: str) -> None:
    body, find = written(dialect, "openai", long_cache=True)
    assert body["prompt_cache_retention"] == "24h"
    remedy = find("prompt_cache_retention is not supported on this model.")
    body, _ = written(dialect, "openai", remedy, long_cache=True)
    assert body == written(dialect, "openai")[0]


# The key of a conversation for prompt caches


def test_the_key_is_the_same_in_a_conversation_and_hides_its_id() -> None:
    chat = ChatRequest((), conversation="c-1")
    key = prompt_cache_key(chat)
    assert key == prompt_cache_key(ChatRequest((), conversation="c-1", agent=True))
    assert key != prompt_cache_key(ChatRequest((), conversation="c-2"))
    assert len(key) <= 64
    assert "c-1" not in key
    assert prompt_cache_key(ChatRequest((), conversation="\ud800"))


def test_a_key_of_the_client_wins() -> None:
    keys = {
        prompt_cache_key(ChatRequest((), conversation=name, cache_key="app"))
        for name in ("c-1", "c-2", "")
    }
    assert len(keys) == 1
