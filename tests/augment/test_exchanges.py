"""History items: the user's words in each, and its place in the history."""

from typing import Any

import pytest

from byok.augment.history import HistoryItem, read_exchange, read_exchanges
from byok.chat import TextPart
from tests.fakes.bodies import exchange, result_node, text_node


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


def test_ellipsis_that_the_user_typed_is_text() -> None:
    """Only beside tool results do dots mean a continuation."""
    assert said_by(read_exchange(exchange("...", "Yes?"))) == ["..."]


def test_exchange_items_that_are_no_objects_are_left_out() -> None:
    body = {"chat_history": [None, "x", exchange("Hi?"), 5]}
    assert [said_by(e) for e in read_exchanges(body)] == [["Hi?"]]
    assert read_exchanges({"chat_history": "x"}) == []
