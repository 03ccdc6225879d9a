"""History items: the answer's text, its calls, and byok's own lines out again."""

from typing import Any

import pytest

from byok.augment.exchanges import (
    HistoryItem,
    read_exchange,
    read_exchanges,
    read_reply,
    without_notices,
)
from byok.chat import TextPart, ToolCall
from tests.fakes.bodies import call_node, exchange, result_node, text_node


def raw(content: str) -> dict[str, Any]:
    return {"type": 0, "content": content}


def finished(content: str) -> dict[str, Any]:
    return {"type": 2, "content": content}


@pytest.mark.parametrize(
    ("item", "said"),
    [
        pytest.param({"response_text": "a", "response_nodes": [raw("b")]}, "a",
                     id="response_text wins"),
        pytest.param({"response_text": "", "response_nodes": [raw("b"), raw("c")]},
                     "bc", id="raw nodes are joined"),
        pytest.param({"response_nodes": [raw("b"), finished("c"), finished("")]}, "c",
                     id="the last finished node with text wins over raw ones"),
        pytest.param({"response_nodes": [finished(""), raw("b")]}, "b",
                     id="an empty finished node says nothing"),
        pytest.param({"structured_output_nodes": [raw("b")]}, "b", id="alias"),
        pytest.param({"responseText": "a"}, "a", id="camelCase"),
        pytest.param({"response_nodes": [{"type": 8, "thinking": {"summary": "t"}},
                      {"type": 3, "content": "a.py:1-2"}]}, "", id="other nodes"),
        pytest.param({"response_text": None, "response_nodes": None}, "", id="nulls"),
        pytest.param({"response_text": ["a"], "response_nodes": [5]}, "", id="odd"),
    ],
)  # fmt: skip
def test_the_answers_text_is_found(item: dict[str, Any], said: str) -> None:
    assert read_reply(item).text == said


@pytest.mark.parametrize(
    ("nodes", "calls"),
    [
        pytest.param([call_node("a"), call_node("b")], "a b", id="in order"),
        pytest.param([call_node("a", kind=7)], "a", id="only begun"),
        pytest.param([call_node("a", kind=7), call_node("a")], "a", id="begun, whole"),
        pytest.param([call_node("a"), call_node("a", kind=7)], "a", id="whole, begun"),
        pytest.param([call_node("a"), call_node("a")], "a", id="the same twice"),
        pytest.param([call_node("a", name="")], "", id="nameless"),
        pytest.param([{"type": 5, "tool_use": None}, {"type": 5}], "", id="empty"),
    ],
)
def test_calls_are_read_once_each(nodes: list[dict[str, Any]], calls: str) -> None:
    found = read_reply({"response_nodes": nodes}).calls
    assert [call.id for call in found] == calls.split()


def test_a_whole_call_wins_over_a_begun_one() -> None:
    nodes = [
        call_node("a", arguments="{}", kind=7),
        call_node("a", arguments='{"x":1}'),
    ]
    assert read_reply({"response_nodes": nodes}).calls == (
        ToolCall("a", "view", '{"x":1}'),
    )


def test_the_thoughts_of_an_answer_are_read_apart() -> None:
    thoughts = [{"type": 8, "thinking": {"summary": text}} for text in ("Hm", "m.")]
    reply = read_reply({"response_nodes": [*thoughts, raw("Yes."), {"type": 8}]})
    assert (reply.text, reply.thinking) == ("Yes.", "Hmm.")


def test_calls_without_an_id_are_all_kept() -> None:
    nodes = [call_node("", "view"), call_node(None, "save")]
    found = read_reply({"response_nodes": nodes}).calls
    assert [call.name for call in found] == ["view", "save"]


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ('{"path": "a.py"}', '{"path": "a.py"}'),
        ('{ "n":1.0 }', '{ "n":1.0 }'),
        ('{"half": "\\ud83d"}', '{"half": "\\ud83d"}'),
        ("", "{}"), (None, "{}"), ("[1]", "{}"), ("5", "{}"), ('{"bad', "{}"),
        ({"path": "a"}, "{}"), ("[" * 5000, "{}"), ('{"x": NaN}', "{}"),
    ],
)  # fmt: skip
def test_arguments_pass_verbatim_where_they_are_an_object(
    written: Any, arguments: str
) -> None:
    [call] = read_reply({"response_nodes": [call_node("a", arguments=written)]}).calls
    assert call.arguments == arguments


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Hi.", "Hi."),
        ("Hi.\n", "Hi.\n"),
        ("Hi.\n[byok] It broke.", "Hi."),
        ("Hi.\n\n[byok] One.\n[byok] Two.\n", "Hi."),
        ("\n[byok] It broke.", ""),
        ("[byok] is a word\nof the answer.", "[byok] is a word\nof the answer."),
        ("Hi.[byok] x", "Hi.[byok] x"),
    ],
)
def test_notices_at_the_end_are_dropped_again(said: str, kept: str) -> None:
    assert without_notices(said) == kept


@pytest.mark.parametrize("place", ["response_text", "nodes"])
def test_no_notice_is_read_back_from_anywhere(place: str) -> None:
    said = "Hi.\n[byok] It broke."
    item = {"response_text": said} if place != "nodes" else {}
    assert read_reply({**item, "response_nodes": [raw(said)]}).text == "Hi."


def said_by(read: HistoryItem) -> list[str]:
    return [p.text for p in read.turn.content if isinstance(p, TextPart)]


@pytest.mark.parametrize(
    ("item", "said"),
    [
        pytest.param(exchange("Hi?"), ["Hi?"], id="message"),
        pytest.param(exchange(nodes=[text_node("Hi?")]), ["Hi?"], id="node"),
        pytest.param({"structured_request_nodes": [text_node("Hi?")]}, ["Hi?"],
                     id="alias"),
        pytest.param({"nodes": [text_node("Hi?")]}, ["Hi?"], id="other alias"),
        pytest.param(exchange("...", nodes=[result_node("a")]), [],
                     id="a placeholder beside results"),
        pytest.param({}, [], id="nothing"),
    ],
)  # fmt: skip
def test_the_users_words_of_an_exchange_are_found(
    item: dict[str, Any], said: list[str]
) -> None:
    assert said_by(read_exchange(item)) == said


def test_dots_that_the_user_typed_are_words() -> None:
    """Only beside tool results do dots mean a continuation."""
    assert said_by(read_exchange(exchange("...", "Yes?"))) == ["..."]


def test_items_that_are_no_objects_are_left_out() -> None:
    body = {"chat_history": [None, "x", exchange("Hi?"), 5]}
    assert [said_by(e) for e in read_exchanges(body)] == [["Hi?"]]
    assert read_exchanges({"chat_history": "x"}) == []
