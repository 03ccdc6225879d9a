"""Loops in the history that a client sends, and the notes that stay where they are."""

from typing import Any

import pytest

from byok.augment.chat_request import decode_chat
from byok.augment.reply_job import Defaults
from byok.chat import ChatRequest, Message, ToolResult
from byok.loops.limits import LoopLimits
from tests.fakes.bodies import exchange, result_node, text_node
from tests.fakes.prompts import BARE

NOTE = "[Note from byok: "
IDE = {"type": 4, "ide_state_node": {"workspace_folders": [{"folder_root": "/w"}]}}
Node = dict[str, Any]


def call(call_id: str, name: str = "edit") -> Node:
    use = {"tool_use_id": call_id, "tool_name": name, "input_json": '{"path":"a"}'}
    return {"id": 1, "type": 5, "content": "", "tool_use": use}


def failure(call_id: str) -> Node:
    return result_node(call_id, "no such text", is_error=True)


class Turn:
    """A turn of an agent that repeats one failing call, as a client sends it."""

    def __init__(self, words: str = "Do it.") -> None:
        self.history: list[Node] = []
        self.words, self.nodes = words, [text_node(words)]

    def step(self, *extra: Node, calls: int = 1) -> None:
        """Let the model call, and the tools fail."""
        ids = [f"c{len(self.history)}_{n}" for n in range(calls)]
        past = exchange(self.words, "", nodes=self.nodes)
        past["response_nodes"] = [call(call_id) for call_id in ids]
        self.history.append(past)
        self.words, self.nodes = "", [*map(failure, ids), *extra]

    def say(self, words: str) -> None:
        """Let the turn end, and the user speak."""
        past = exchange(self.words, "I give up.", nodes=self.nodes)
        self.history.append(past)
        self.words, self.nodes = words, [text_node(words)]

    def decode(self, defaults: Defaults = BARE, **fields: Any) -> ChatRequest:
        body = {"message": self.words, "nodes": self.nodes, "mode": "AGENT"}
        return decode_chat({**body, "chat_history": self.history, **fields}, defaults)


def results(messages: tuple[Message, ...]) -> list[str]:
    return [p.content for m in messages for p in m.parts if isinstance(p, ToolResult)]


def notes(chat: ChatRequest) -> list[bool]:
    return [NOTE in content for content in results(chat.messages)]


def test_a_note_stands_at_the_end_of_the_last_message_and_the_turn_is_ended() -> None:
    turn = Turn()
    seen = []
    for _ in range(6):
        turn.step()
        chat = turn.decode()
        seen.append((chat.loop, bool(chat.ended)))
    assert seen == [
        ("", False),
        ("", False),
        ("warned-failing-3", False),
        ("warned-failing-4", False),
        ("warned-failing-5", False),
        ("ended-failing-6", True),
    ]
    assert notes(chat) == [False, False, True, True, True, True]
    last = results(chat.messages)[-1]
    assert last.startswith("no such text\n\n[Note from byok: edit with")


def test_what_was_sent_before_stays_byte_for_byte() -> None:
    turn = Turn()
    before: tuple[Message, ...] = ()
    for _ in range(8):
        turn.step(IDE)
        messages = turn.decode().messages
        assert messages[: len(before)] == before
        before = messages
    turn.say("Try again.")
    messages = turn.decode().messages
    assert messages[: len(before)] == before


def test_the_users_own_words_begin_anew_but_the_editors_context_does_not() -> None:
    turn = Turn()
    for _ in range(5):
        turn.step(IDE)
    turn.say("Try again.")
    turn.step(IDE)
    chat = turn.decode()
    assert (chat.loop, chat.ended) == ("", "")
    assert notes(chat) == [False, False, True, True, True, False]


def test_words_beside_results_begin_anew() -> None:
    turn = Turn()
    for _ in range(5):
        turn.step()
    turn.step(text_node("Stop that."))
    chat = turn.decode()
    assert (chat.loop, chat.ended) == ("", "")
    assert NOTE not in results(chat.messages)[-1]


def test_of_parallel_calls_the_last_result_has_the_note() -> None:
    turn = Turn()
    turn.step(calls=2)
    turn.step(calls=2)
    assert notes(turn.decode()) == [False, False, False, True]
    turn.nodes.reverse()  # the order of the calls counts, not that of the results
    assert notes(turn.decode()) == [False, False, False, True]


@pytest.mark.parametrize("nodes", [[], [result_node("another", "x")]])
def test_a_result_that_is_missing_is_a_failure(nodes: list[Node]) -> None:
    turn = Turn()
    for _ in range(3):
        turn.step()
        turn.nodes = nodes
    assert turn.decode(message="").loop == "warned-failing-3"


def test_a_result_without_an_id_is_that_of_the_only_call() -> None:
    turn = Turn()
    for n in range(4):
        turn.step()
        turn.nodes = [result_node("", f"content {n}")]
    assert turn.decode().loop == ""


def test_a_silent_job_about_a_loop_is_not_ended() -> None:
    turn = Turn()
    for _ in range(7):
        turn.step()
    chat = turn.decode(silent=True)
    assert (chat.loop, chat.ended) == ("ended-failing-7", "")


def test_switched_off_nothing_is_noted() -> None:
    turn = Turn()
    for _ in range(7):
        turn.step()
    chat = turn.decode(Defaults(loops=LoopLimits(on=False)))
    assert (chat.loop, chat.ended, any(notes(chat))) == ("", "", False)
