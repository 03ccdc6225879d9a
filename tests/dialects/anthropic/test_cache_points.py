from typing import Any

from byok.dialects.anthropic.messages import ask_for_cache

POINT = {"cache_control": {"type": "ephemeral"}}
TOOLS = [{"name": "a"}, {"name": "b"}]
SYSTEM = [{"type": "text", "text": "x"}]
BODY: dict[str, Any] = {"tools": TOOLS, "system": SYSTEM, "messages": []}


def test_the_point_is_behind_the_system_prompt_or_else_behind_the_tools() -> None:
    both = ask_for_cache(BODY)
    assert both == {**BODY, "system": [{**SYSTEM[0], **POINT}], **POINT}
    alone = ask_for_cache({"tools": TOOLS, "messages": []})
    assert alone["tools"] == [TOOLS[0], {**TOOLS[1], **POINT}]
    assert ask_for_cache({"messages": []}) == {"messages": [], **POINT}


def test_a_long_cache_has_its_time_in_every_point() -> None:
    point = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    asked = ask_for_cache(BODY, is_long=True)
    assert asked == {**BODY, "system": [{**SYSTEM[0], **point}], **point}


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
    assert ask_for_cache({**BODY, "messages": messages(9)})["messages"] == messages(9)
