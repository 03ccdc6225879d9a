from typing import Any

from byok.dialects.anthropic.cache_points import (
    ask_for_cache,
    has_points,
    mark_prefix,
    without_cache,
)

POINT = {"cache_control": {"type": "ephemeral"}}
TOOLS = [{"name": "a"}, {"name": "b"}]
SYSTEM = [{"type": "text", "text": "x"}]
BODY: dict[str, Any] = {"tools": TOOLS, "system": SYSTEM, "messages": []}


def test_the_point_is_behind_the_system_prompt_or_else_behind_the_tools() -> None:
    assert mark_prefix(BODY)["system"] == [{**SYSTEM[0], **POINT}]
    assert mark_prefix(BODY)["tools"] == TOOLS
    assert mark_prefix({"tools": TOOLS})["tools"] == [TOOLS[0], {**TOOLS[1], **POINT}]
    assert mark_prefix({"messages": []}) == {"messages": []}


def test_a_point_that_is_no_longer_at_the_end_moves() -> None:
    marked = mark_prefix({"tools": TOOLS})
    longer = mark_prefix({"tools": [*marked["tools"], {"name": "c"}]})
    assert longer["tools"] == [*TOOLS, {"name": "c", **POINT}]


def test_a_turn_of_many_blocks_has_a_point_where_the_last_request_ended() -> None:
    def messages(calls: int) -> list[dict[str, Any]]:
        return [
            {"role": "user", "content": [{"type": "text"}, {"type": "image"}]},
            {"role": "assistant", "content": [{"type": "tool_use"}] * calls},
            {"role": "user", "content": [{"type": "tool_result"}] * calls},
        ]

    asked = ask_for_cache({**BODY, "messages": messages(10)})
    first, turn, results = asked["messages"]
    assert first["content"] == [{"type": "text"}, {"type": "image", **POINT}]
    assert [turn, results] == messages(10)[1:]
    assert has_points({"messages": asked["messages"]})
    assert without_cache(asked) == {**BODY, "messages": messages(10)}
    assert ask_for_cache({**BODY, "messages": messages(9)})["messages"] == messages(9)


def test_points_can_be_taken_away() -> None:
    asked = ask_for_cache(BODY)
    assert asked["cache_control"] == {"type": "ephemeral"}
    assert has_points(asked)
    assert without_cache(asked) == BODY
    assert not has_points(BODY)
