"""What a client was told, and how two answers differ."""

import json

import pytest

from byok.augment.chat_reply import chunk
from byok.replay.turn import Turn, TurnDifference, compare_turns, read_turn


def line(text: str = "", *nodes: object, **more: object) -> str:
    return json.dumps({**chunk(text), "nodes": list(nodes), **more}) + "\n"


def call(arguments: str, call_id: str = "call_" + "a" * 24) -> dict[str, object]:
    use = {"tool_use_id": call_id, "tool_name": "view", "input_json": arguments}
    return {"id": 1, "type": 5, "content": "", "tool_use": use}


def test_an_editors_stream_is_read_as_a_turn() -> None:
    usage = {"id": 2, "type": 10, "token_usage": {"input_tokens": 3}}
    text = line("Hel") + line("lo") + line("", call('{"b":1, "a":2}'), usage)
    turn = read_turn("/chat-stream", text + line("", stop_reason=3))
    assert (turn.text, turn.stop, turn.usage) == ("Hello", "3", '{"input_tokens":3}')
    assert turn.calls == [("view", '{"a":2,"b":1}')]


@pytest.mark.parametrize(
    ("endpoint", "events"),
    [
        (
            "/v1/chat/completions",
            [
                {"choices": [{"index": 0, "delta": {"content": "Hello"}}]},
                {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            ],
        ),
        (
            "/v1/messages",
            [
                {"type": "message_start", "message": {"usage": {}}},
                {
                    "type": "content_block_start",
                    "index": 0,
                    "content_block": {"type": "text", "text": ""},
                },
                {
                    "type": "content_block_delta",
                    "index": 0,
                    "delta": {"type": "text_delta", "text": "Hello"},
                },
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
                {"type": "message_stop"},
            ],
        ),
    ],
)
def test_a_vendors_stream_is_read_as_a_turn(
    endpoint: str, events: list[object]
) -> None:
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    turn = read_turn(endpoint, text)
    assert (turn.text, turn.stop, turn.error) == ("Hello", "stop", "")


def test_a_broken_stream_is_an_error_of_the_turn() -> None:
    assert read_turn("/v1/chat/completions", "data: {").error


@pytest.mark.parametrize(
    "text", ["", "no JSON", "{", "[]", '{"nodes": 5}', '{"text": 1, "nodes": [1]}']
)
def test_any_text_can_be_read(text: str) -> None:
    assert read_turn("/chat-stream", text).text == ""


def test_equal_answers_differ_in_nothing_but_ids() -> None:
    one, other = (
        line("a") + between + line("", call("{}", "call_" + letter * 24))
        for letter, between in (("a", ""), ("b", json.dumps(chunk()) + "\n"))
    )
    turns = [read_turn("/chat-stream", text) for text in (one, other)]
    assert compare_turns(*turns, lines=True) == []


def test_every_difference_is_named() -> None:
    one = Turn("a", "", [("f", "{}")], "1", "3", "")
    other = Turn("b", "", [("f", "{}"), ("g", "{}")], "2", "3", "")
    assert compare_turns(one, other, lines=True) == [
        TurnDifference("text", "a", "b"),
        TurnDifference("stop", "1", "2"),
        TurnDifference("tool call 2", "", "g {}"),
    ]


def test_another_line_is_a_difference_where_the_turn_is_the_same() -> None:
    one = read_turn("/chat-stream", line("ab"))
    other = read_turn("/chat-stream", line("a") + line("b"))
    [found] = compare_turns(one, other, lines=True)
    assert found.what == "line 1"
    assert compare_turns(one, other, lines=False) == []
