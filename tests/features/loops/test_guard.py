"""Loops in the history that a client sends, and the notes that stay where they are."""

from typing import Any, NamedTuple

import pytest

from byok.core.chat import ChatRequest, Message, ToolResult
from byok.core.record import RequestRecord
from byok.features.base import Asking, Supplies, Verdict
from byok.features.loops.guard import LoopGuard
from byok.protocols.augment.chat_request import decode_chat
from byok.settings import Settings
from tests.fakes.bodies import exchange, result_node, text_node
from tests.fakes.feature_supplies import make_site
from tests.fakes.prompts import BARE

NOTE = "[Note from byok: "
IDE = {"type": 4, "ide_state_node": {"workspace_folders": [{"folder_root": "/w"}]}}
Node = dict[str, Any]


def call(call_id: str, name: str = "edit") -> Node:
    use = {"tool_use_id": call_id, "tool_name": name, "input_json": '{"path":"a"}'}
    return {"id": 1, "type": 5, "content": "", "tool_use": use}


def failure(call_id: str) -> Node:
    return result_node(call_id, "no such text", is_error=True)


class Judged(NamedTuple):
    """The loop that was noted, the verdict, and what is asked."""

    loop: str
    verdict: Verdict
    chat: ChatRequest

    @property
    def fact(self) -> tuple[str, bool]:
        """The loop, and whether the turn is ended."""
        return self.loop, bool(self.verdict.answer)

    @property
    def results(self) -> list[str]:
        parts = [part for message in self.chat.messages for part in message.parts]
        return [part.content for part in parts if isinstance(part, ToolResult)]

    @property
    def notes(self) -> list[bool]:
        return [NOTE in content for content in self.results]


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

    async def ask(self, *, on: bool = True, **fields: Any) -> Judged:
        """Decode the body, and ask the guard."""
        body = {"message": self.words, "nodes": self.nodes, "mode": "AGENT"}
        body = {**body, "chat_history": self.history, **fields}
        chat, record = decode_chat(body, BARE), RequestRecord("r")
        guard = LoopGuard(make_site())
        settings = Settings.model_validate({"loops": {"on": on}})
        guard.configure(Supplies(settings))
        verdict = await guard.admit(Asking(record, "u", "m", chat))
        return Judged(record.loop, verdict, verdict.chat or chat)


async def test_a_note_stands_at_the_end_of_the_last_message_and_the_turn_is_ended() -> (
    None
):
    turn = Turn()
    seen: list[tuple[str, bool]] = []
    for _ in range(6):
        turn.step()
        judged = await turn.ask()
        seen.append(judged.fact)
    assert seen == [
        ("", False),
        ("", False),
        ("warned-failing-3", False),
        ("warned-failing-4", False),
        ("warned-failing-5", False),
        ("ended-failing-6", True),
    ]
    turn.step()
    assert (await turn.ask(silent=True)).notes[:6] == [False] * 2 + [True] * 4
    last = (await turn.ask(silent=True)).results[-1]
    assert last.startswith("no such text\n\n[Note from byok: edit with")


async def test_what_was_sent_before_stays_byte_for_byte() -> None:
    turn = Turn()
    before: tuple[Message, ...] = ()
    for _ in range(5):
        turn.step(IDE)
        messages = (await turn.ask()).chat.messages
        assert messages[: len(before)] == before
        before = messages
    turn.say("Try again.")
    messages = (await turn.ask()).chat.messages
    assert messages[: len(before)] == before


async def test_the_users_own_words_begin_anew_but_the_editors_context_does_not() -> (
    None
):
    turn = Turn()
    for _ in range(5):
        turn.step(IDE)
    turn.say("Try again.")
    turn.step(IDE)
    judged = await turn.ask()
    assert judged.fact == ("", False)
    assert judged.notes == [False, False, True, True, True, False]


async def test_words_beside_results_begin_anew() -> None:
    turn = Turn()
    for _ in range(5):
        turn.step()
    turn.step(text_node("Stop that."))
    judged = await turn.ask()
    assert judged.fact == ("", False)
    assert not judged.notes[-1]


async def test_of_parallel_calls_the_last_result_has_the_note() -> None:
    turn = Turn()
    turn.step(calls=2)
    turn.step(calls=2)
    assert (await turn.ask()).notes == [False, False, False, True]
    turn.nodes.reverse()  # the order of the calls counts, not that of the results
    assert (await turn.ask()).notes == [False, False, False, True]


@pytest.mark.parametrize("nodes", [[], [result_node("another", "x")]])
async def test_a_result_that_is_missing_is_a_failure(nodes: list[Node]) -> None:
    turn = Turn()
    for _ in range(3):
        turn.step()
        turn.nodes = nodes
    assert (await turn.ask(message="")).loop == "warned-failing-3"


async def test_a_result_without_an_id_is_that_of_the_only_call() -> None:
    turn = Turn()
    for n in range(4):
        turn.step()
        turn.nodes = [result_node("", f"content {n}")]
    assert (await turn.ask()).loop == ""


async def test_a_silent_job_about_a_loop_is_not_ended() -> None:
    turn = Turn()
    for _ in range(7):
        turn.step()
    assert (await turn.ask(silent=True)).fact == ("ended-failing-7", False)
