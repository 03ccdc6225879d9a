"""Every situation of calls and results, and the one order in which they go up."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.chat import (
    ImagePart,
    Message,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from byok.core.conversation_builder import NO_RESULT
from byok.protocols.augment.history import (
    BEGINNING,
    HistoryItem,
    MessageBuilder,
    read_exchange,
    read_exchanges,
)
from byok.protocols.augment.nodes import read_turn
from tests.fakes.bodies import (
    PNG,
    call_node,
    exchange,
    image_node,
    result_node,
    text_node,
)


def built(*past: dict[str, Any], now: Any = ()) -> tuple[Message, ...]:
    history = MessageBuilder()
    for number, item in enumerate(past):
        history.add_exchange(read_exchange(item), number)
    history.add_turn(read_turn({"nodes": list(now)}, ""))
    return history.messages()


def lines(messages: tuple[Message, ...]) -> list[str]:
    """Write messages one a line: `user: words`, `tool a: done`, `assistant: +a`."""
    return [_line(message) for message in messages]


def _line(message: Message) -> str:
    shown = []
    head = message.role.value
    for part in message.parts:
        match part:
            case TextPart(text=text):
                shown.append(text)
            case ImagePart():
                shown.append("<image>")
            case ToolCall(id=call_id):
                shown.append(f"+{call_id}")
            case ToolResult(call_id=call_id, content=content):
                head = f"tool {call_id}"
                error = ["error"] if part.is_error else []
                shown = [*error, content, *("<image>" for _ in part.images)]
            case ThinkingPart(text=text):
                shown.append(f"({text})")
    return f"{head}: {' | '.join(shown)}"


ASKED = exchange("Look.", calls=["a", "b"])
ORPHAN = (
    "[earlier tool result, call not in this conversation: "
    "a record of the past, no format to imitate]"
)
MISSING = NO_RESULT
THOUGHT = {"type": 8, "thinking": {"summary": "Hm."}}


def said(content: str) -> dict[str, Any]:
    return {"type": 0, "content": content}


# Each row: past exchanges, the current nodes, the messages that must come out.
PAIRING: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], list[str]]] = {
    "a result of an open call is a tool message": (
        [exchange("Look.", calls=["a"])],
        [result_node("a", "found")],
        ["user: Look.", "assistant: +a", "tool a: found"],
    ),
    "a result without a call becomes labelled text": (
        [exchange("Look.", "No.")],
        [result_node("z", "found"), text_node("Go on.")],
        [
            "user: Look.",
            "assistant: No.",
            f"user: {ORPHAN}\nid: z\nstatus: ok\nfound | Go on.",
        ],
    ),
    "an orphan waits until the open calls are answered": (
        [exchange("Look.", calls=["a"])],
        [result_node("z", "late"), result_node("a", "found")],
        [
            "user: Look.",
            "assistant: +a",
            "tool a: found",
            f"user: {ORPHAN}\nid: z\nstatus: ok\nlate",
        ],
    ),
    "an orphan names the tool and the error where they are known": (
        [exchange("Look.", calls=["a"]), exchange("Well?", "No.")],
        [result_node("a", "late", is_error=True)],
        [
            "user: Look.",
            "assistant: +a",
            f"tool a: {MISSING}",
            "user: Well?",
            "assistant: No.",
            f"user: {ORPHAN}\nid: a\ntool: view\nstatus: error\nlate",
        ],
    ),
    "an equal repeat of a result is dropped": (
        [exchange("Look.", calls=["a"])],
        [result_node("a", "one"), result_node("a", "one")],
        ["user: Look.", "assistant: +a", "tool a: one"],
    ),
    "of two different results the first one counts": (
        [exchange("Look.", calls=["a"])],
        [result_node("a", "one"), result_node("a", "two")],
        [
            "user: Look.",
            "assistant: +a",
            "tool a: one",
            f"user: {ORPHAN}\nid: a\ntool: view\nstatus: ok\ntwo",
        ],
    ),
    "a call without a result gets one before the user speaks": (
        [ASKED],
        [result_node("b", "found"), text_node("Stop.")],
        [
            "user: Look.",
            "assistant: +a | +b",
            f"tool a: {MISSING}",
            "tool b: found",
            "user: Stop.",
        ],
    ),
    "a call without a result gets one before the assistant speaks": (
        [exchange("Look.", calls=["a"]), exchange("", "Done.")],
        [text_node("Good.")],
        [
            "user: Look.",
            "assistant: +a",
            f"tool a: {MISSING}",
            "assistant: Done.",
            "user: Good.",
        ],
    ),
    "a call without a result gets one at the end": (
        [exchange("Look.", calls=["a"])],
        [],
        ["user: Look.", "assistant: +a", f"tool a: {MISSING}"],
    ),
    "results come in the order of the calls": (
        [ASKED],
        [result_node("b", "two"), result_node("a", "one")],
        ["user: Look.", "assistant: +a | +b", "tool a: one", "tool b: two"],
    ),
    "only the next exchange can answer": (
        [ASKED, exchange(nodes=[result_node("a", "one")], answer="Hm.")],
        [result_node("b", "two")],
        [
            "user: Look.",
            "assistant: +a | +b",
            "tool a: one",
            f"tool b: {MISSING}",
            "assistant: Hm.",
            f"user: {ORPHAN}\nid: b\ntool: view\nstatus: ok\ntwo",
        ],
    ),
    "a result before its call is an orphan": (
        [exchange(nodes=[result_node("a", "early")], calls=["a"])],
        [result_node("a", "found")],
        [
            f"user: {ORPHAN}\nid: a\nstatus: ok\nearly",
            "assistant: +a",
            "tool a: found",
        ],
    ),
    "an empty id pairs where one call and one result are left": (
        [exchange("Look.", calls=["a", ""])],
        [result_node("", "two"), result_node("a", "one")],
        ["user: Look.", "assistant: +a | +call_0_0", "tool a: one",
         "tool call_0_0: two"],
    ),
    "an empty id pairs with nothing where several are left": (
        [exchange("Look.", calls=["", call_node("", "save")])],
        [result_node("", "which?")],
        [
            "user: Look.",
            "assistant: +call_0_0 | +call_0_1",
            f"tool call_0_0: {MISSING}",
            f"tool call_0_1: {MISSING}",
            f"user: {ORPHAN}\nid: unknown\nstatus: ok\nwhich?",
        ],
    ),
    "a made id is not one that the client uses": (
        [exchange("Look.", calls=["call_0_0", ""])],
        [result_node("call_0_0", "one"), result_node(None, "two")],
        ["user: Look.", "assistant: +call_0_0 | +call_0_1", "tool call_0_0: one",
         "tool call_0_1: two"],
    ),
    "an id used again later pairs with the later call": (
        [
            exchange("Look.", calls=["a"]),
            exchange(nodes=[result_node("a", "one")], calls=["a"]),
        ],
        [result_node("a", "two")],
        ["user: Look.", "assistant: +a", "tool a: one", "assistant: +a", "tool a: two"],
    ),
    "ids are matched verbatim": (
        [exchange("Look.", calls=["A"])],
        [result_node("a", "found")],
        [
            "user: Look.",
            "assistant: +A",
            f"tool A: {MISSING}",
            f"user: {ORPHAN}\nid: a\nstatus: ok\nfound",
        ],
    ),
}  # fmt: skip

ORDER: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], list[str]]] = {
    "results stand before the words of their exchange": (
        [
            exchange("Look.", "Yes.", calls=["a"]),
            exchange("And?", "Good.", nodes=[text_node("And?"), result_node("a")]),
        ],
        [text_node("Bye.")],
        [
            "user: Look.",
            "assistant: Yes. | +a",
            "tool a: done",
            "user: And?",
            "assistant: Good.",
            "user: Bye.",
        ],
    ),
    "an exchange of results alone has no user message": (
        [ASKED, exchange(nodes=[result_node("a"), result_node("b")], answer="Ok.")],
        [text_node("Bye.")],
        [
            "user: Look.",
            "assistant: +a | +b",
            "tool a: done",
            "tool b: done",
            "assistant: Ok.",
            "user: Bye.",
        ],
    ),
    "an empty answer is left out and the user speaks once": (
        [exchange("One."), exchange("Two.", " \n")],
        [text_node("Three.")],
        ["user: One. | Two. | Three."],
    ),
    "two answers in a row become one message": (
        [exchange("One.", "A."), exchange("", "B.")],
        [text_node("Two.")],
        ["user: One.", "assistant: A. | \n\nB.", "user: Two."],
    ),
    "a conversation cut at the start begins with the user": (
        [exchange("", "A.")],
        [text_node("Two.")],
        [f"user: {BEGINNING}", "assistant: A.", "user: Two."],
    ),
    "the pictures and the error of a result stay with it": (
        [ASKED],
        [
            result_node("a", content_nodes=[
                {"type": 1, "text_content": "Opened."},
                {"type": 2, "image_content": {"image_data": PNG, "format": 1}},
            ]),
            result_node("b", "no terminal", is_error=True),
            text_node("So?"),
        ],
        [
            "user: Look.",
            "assistant: +a | +b",
            "tool a: Opened.\n[image 1 below] | <image>",
            "tool b: error | no terminal",
            "user: So?",
        ],
    ),
    "thoughts stay where they were": (
        [exchange("Look.", calls=[THOUGHT, "a"]), exchange("", "Ok.", calls=[THOUGHT])],
        [text_node("So?")],
        [
            "user: Look.",
            "assistant: (Hm.) | +a",
            f"tool a: {MISSING}",
            "assistant: (Hm.) | Ok.",
            "user: So?",
        ],
    ),
    "thoughts alone are no answer": (
        [exchange("One.", calls=[THOUGHT])],
        [text_node("Two.")],
        ["user: One. | Two."],
    ),
    "of two answers in a row the second keeps its thoughts": (
        [exchange("One.", "A.", calls=[THOUGHT]), exchange("", "B.", calls=[THOUGHT])],
        [text_node("Two.")],
        ["user: One.", "assistant: A. | (Hm.) | \n\nB.", "user: Two."],
    ),
    "thoughts, text and calls alternate as they did": (
        [exchange("Look.", "One.Two.", calls=[
            THOUGHT, said("One."), call_node("a"), THOUGHT, said("Two."), call_node("b")
        ])],
        [result_node("b"), result_node("a")],
        [
            "user: Look.",
            "assistant: (Hm.) | One. | +a | (Hm.) | Two. | +b",
            "tool a: done",
            "tool b: done",
        ],
    ),
    "pictures of the user stay in their place": (
        [],
        [text_node("This"), image_node(), text_node("or that?")],
        ["user: This | <image> | or that?"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", PAIRING.values(), ids=PAIRING)
@pytest.mark.case("B89")
def test_history_pairs_tool_calls_and_results(
    row: tuple[list[dict[str, Any]], list[dict[str, Any]], list[str]],
) -> None:
    past, now, expected = row
    assert lines(built(*past, now=now)) == expected


@pytest.mark.parametrize("row", ORDER.values(), ids=ORDER)
def test_history_order_of_messages(
    row: tuple[list[dict[str, Any]], list[dict[str, Any]], list[str]],
) -> None:
    past, now, expected = row
    assert lines(built(*past, now=now)) == expected


@pytest.mark.parametrize("content", ["found", "", " \n", "Error: no"])
@pytest.mark.parametrize("is_error", [False, True])
def test_history_passes_a_tool_result_unchanged(content: str, is_error: bool) -> None:
    node = result_node("a", content, is_error=is_error)
    *_, message = built(exchange("Look.", calls=["a"]), now=[node])
    assert message.parts == (ToolResult("a", "view", content, is_error),)


def test_history_truncates_a_long_orphan_result_in_the_middle() -> None:
    content = "head" + "x" * 20_000 + "reference id: 77"
    [line] = lines(built(now=[result_node("z", content)]))
    assert "head" in line
    assert line.endswith("reference id: 77")
    assert len(line) < 8300


IDS = st.sampled_from(["a", "b", "call_0_0", "call_1_0", "", "c"])
PAST = st.lists(
    st.builds(
        lambda said, answer, calls, results: exchange(
            said, answer, calls=calls, nodes=[result_node(i, i) for i in results]
        ),
        st.sampled_from(["", "Hi?"]),
        st.sampled_from(["", "Yes."]),
        st.lists(IDS, max_size=3),
        st.lists(IDS, max_size=3),
    ),
    max_size=5,
)


@given(PAST, st.lists(IDS, max_size=3))
@pytest.mark.case("B89")
def test_history_follows_every_tool_call_by_just_its_results(
    past: Any, results: Any
) -> None:
    messages = built(*past, now=[result_node(i) for i in results])
    open_ids: list[str] = []
    for message in (*messages, Message(Role.SYSTEM, ())):
        if message.role is Role.TOOL:
            [result] = message.parts
            assert isinstance(result, ToolResult)
            open_ids.remove(result.call_id)
            continue
        assert open_ids == []
        open_ids = [p.id for p in message.parts if isinstance(p, ToolCall)]
        assert len(set(open_ids)) == len(open_ids)
        assert all(open_ids)
    roles = [m.role for m in messages]
    assert roles[:1] in ([], [Role.USER])
    pairs = list(pairwise(roles))
    assert (Role.USER, Role.USER) not in pairs
    assert (Role.ASSISTANT, Role.ASSISTANT) not in pairs


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


def test_exchange_items_that_are_no_objects_are_left_out() -> None:
    body = {"chat_history": [None, "x", exchange("Hi?"), 5]}
    assert [said_by(e) for e in read_exchanges(body)] == [["Hi?"]]
    assert read_exchanges({"chat_history": "x"}) == []
