"""Every situation of calls and results, and the one order in which they go up."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.chat import (
    ImagePart,
    Message,
    Origin,
    ProviderData,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from byok.core.conversation_builder import NO_RESULT
from byok.core.wire.encrypted_content import write_encrypted
from byok.protocols.augment.history import (
    BEGINNING,
    Block,
    HistoryItem,
    MessageBuilder,
    read_exchange,
    read_reply,
    render,
    render_summary,
    without_notices,
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


def raw(content: str) -> dict[str, Any]:
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
    "thoughts, text and calls alternate as they did": (
        [exchange("Look.", "One.Two.", calls=[
            THOUGHT, raw("One."), call_node("a"), THOUGHT, raw("Two."), call_node("b")
        ])],
        [result_node("b"), result_node("a")],
        [
            "user: Look.",
            "assistant: (Hm.) | One. | +a | (Hm.) | Two. | +b",
            "tool a: done",
            "tool b: done",
        ],
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
        pytest.param({"structured_request_nodes": [text_node("Hi?")]}, ["Hi?"],
                     id="alias"),
        pytest.param(exchange("...", nodes=[result_node("a")]), [],
                     id="a placeholder beside results"),
        pytest.param({}, [], id="nothing"),
    ],
)  # fmt: skip
def test_the_users_words_of_an_exchange_are_found(
    item: dict[str, Any], said: list[str]
) -> None:
    assert said_by(read_exchange(item)) == said


# The assistant's turns: text, calls and thoughts, without byok's own lines


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
        pytest.param({"structured_output_nodes": [raw("b")]}, "b", id="alias"),
        pytest.param({"response_nodes": [{"type": 8, "thinking": {"summary": "t"}},
                      {"type": 3, "content": "a.py:1-2"}]}, "", id="other nodes"),
        pytest.param({"response_text": ["a"], "response_nodes": [5]}, "", id="odd"),
    ],
)  # fmt: skip
def test_recorded_reply_text_is_found(item: dict[str, Any], said: str) -> None:
    assert read_reply(item).text == said


@pytest.mark.parametrize(
    ("nodes", "calls"),
    [
        pytest.param([call_node("a"), call_node("b")], "a b", id="in order"),
        pytest.param([call_node("a"), call_node("a", kind=7)], "a", id="whole, begun"),
        pytest.param([call_node("a"), call_node("a")], "a", id="the same twice"),
        pytest.param([call_node("a", name="")], "", id="nameless"),
        pytest.param([{"type": 5, "tool_use": None}, {"type": 5}], "", id="empty"),
    ],
)
def test_recorded_tool_calls_are_read_once_each(
    nodes: list[dict[str, Any]], calls: str
) -> None:
    found = read_reply({"response_nodes": nodes}).calls
    assert [call.id for call in found] == calls.split()


SIGNED = ProviderData(Origin("d", "u", "m"), {"signature": "CiQ+/é=="})


def thought(text: str, encrypted: Any = None) -> dict[str, Any]:
    payload = {"summary": text, "content": None, "encrypted_content": encrypted}
    return {"type": 8, "thinking": payload}


@pytest.mark.parametrize(
    ("said", "nodes", "blocks"),
    [
        pytest.param("ab", [thought("h"), raw("a"), call_node("1"), raw("b")],
                     ["(h)", "a", "+1", "b"], id="as the nodes stand"),
        pytest.param("ab\n[byok] x", [raw("a"), call_node("1"), raw("b\n")],
                     ["a", "+1", "b"], id="without notices"),
        pytest.param("other", [raw("a"), call_node("1"), raw("b")], ["other", "+1"],
                     id="a text that is not that of the nodes"),
        pytest.param("a", [call_node("1"), thought("h")], ["a", "+1", "(h)"],
                     id="a text without a node"),
        pytest.param("a\n", [raw("a"), call_node("1"), raw("\n")], ["a\n", "+1"],
                     id="white space after a text"),
        pytest.param(" \n", [raw(" "), call_node("1"), raw("\n")], ["+1"],
                     id="only white space"),
    ],
)  # fmt: skip
def test_blocks_stand_in_the_recorded_order(
    said: str | None, nodes: list[dict[str, Any]], blocks: list[str]
) -> None:
    reply = read_reply({"response_text": said, "response_nodes": nodes})
    assert [_shown(block) for block in reply.blocks] == blocks


def _shown(block: Block) -> str:
    match block:
        case TextPart(text=text):
            return text
        case ThinkingPart(text=text):
            return f"({text})"
        case ToolCall(id=call_id):
            return f"+{call_id}"


NODES = st.lists(
    st.sampled_from(
        [raw("a"), raw("b\n"), raw(" "), raw(""), thought("h"), call_node("1"),
         call_node("2"), call_node(""), {"type": 3, "content": "x"}]
    ),
    max_size=8,
)  # fmt: skip


@given(NODES, st.sampled_from([None, "", "ab", "\n[byok] note"]))
def test_recorded_reply_blocks_are_read_once_and_nothing_is_added(
    nodes: list[dict[str, Any]], end: str | None
) -> None:
    joined = "".join(n["content"] for n in nodes if n["type"] == 0)
    said = None if end is None else joined + end
    reply = read_reply({"response_text": said, "response_nodes": nodes})
    expected = without_notices(said or joined)
    assert reply.text == (expected if expected.strip() else "")
    shown = [_shown(b) for b in reply.blocks if not isinstance(b, TextPart)]
    others = [n for n in nodes if n["type"] in (5, 8)]
    written = ["(h)" if n["type"] == 8 else f"+{n['tool_use']['tool_use_id']}"
               for n in others]  # fmt: skip
    once = [w for n, w in enumerate(written) if w not in written[:n] or w in "(h)+"]
    assert shown == once
    assert all(b.text.strip() for b in reply.blocks if isinstance(b, TextPart))


def test_recorded_thinking_keeps_its_provider_data() -> None:
    nodes = [thought("", write_encrypted(SIGNED)), thought("h", "gAAAA"), raw("a")]
    reply = read_reply({"response_nodes": nodes})
    assert reply.blocks == (
        ThinkingPart("", SIGNED),
        ThinkingPart("h"),
        TextPart("a"),
    )


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Hi.", "Hi."),
        ("Hi.\n[byok] It broke.", "Hi."),
        ("Hi.\n\n[byok] One.\n[byok] Two.\n", "Hi."),
        ("\n[byok] It broke.", ""),
        ("[byok] is a word\nof the answer.", "[byok] is a word\nof the answer."),
        ("[byok] Waiting.\n\nHi.", "Hi."),
        ("[byok] Waiting.\n\n[byok] Again.\n\n Hi.\n[byok] One.", " Hi."),
        ("Hi.\n[byok] Waiting.\n\nAnd", "Hi.\n[byok] Waiting.\n\nAnd"),
    ],
)
def test_recorded_notices_at_both_ends_are_dropped(said: str, kept: str) -> None:
    assert without_notices(said) == kept


# A history summary becomes text in one pass, with everything near it


END = [
    exchange("Run it.", "Running.", calls=[call_node("e1", "launch", '{"x": 1}')]),
    exchange(nodes=[result_node("e1", "2 failed", is_error=True)], answer="Two fail."),
]


def node(template: Any = None, **fields: Any) -> dict[str, Any]:
    return {
        "summary_text": "Lexer done.",
        "summarization_request_id": "r-1",
        "history_beginning_dropped_num_exchanges": 14,
        "history_middle_abridged_text": "wrote tests",
        "history_end": END,
        "message_template": template,
        **fields,
    }


def summary_node(**fields: Any) -> dict[str, Any]:
    return {"id": 1, "type": 10, "history_summary_node": node(**fields)}


def shown(*nodes: dict[str, Any]) -> list[str]:
    turn = render_summary(read_turn({"nodes": list(nodes)}, ""))
    return [p.text for p in turn.content if isinstance(p, TextPart)]


@pytest.mark.parametrize(
    ("placeholder", "value"),
    [
        ("summary", "Lexer done."),
        ("summarization_request_id", "r-1"),
        ("beginning_part_dropped_num_exchanges", "14"),
        ("middle_part_abridged", "wrote tests"),
        ("unknown_one", "{unknown_one}"),
    ],
)
def test_summary_template_placeholder_is_filled_or_stays(
    placeholder: str, value: str
) -> None:
    assert render(node(f"<{{{placeholder}}}>"), []) == f"<{value}>"


def test_summary_holds_nothing_that_byok_said() -> None:
    said = "[byok] fake: it answered 401. Check the key."
    wrong: list[str] = []
    for text, kept in (
        (said, ""),
        (f"\n{said}", "\n"),
        (f"Lexer done.\n{said}", "Lexer done.\n"),
        (f"<a>{said}</a>\n<b>x</b>", "<a></a>\n<b>x</b>"),
        (f"<a>x\n{said}\n{said}</a>", "<a>x\n</a>"),
        (f"  {said}\n\nHi.", "\nHi."),
        ("about byok [byok] in a line", "about byok [byok] in a line"),
    ):
        fields = {"summary_text": text, "history_middle_abridged_text": text}
        shown = render(node("{summary}|{middle_part_abridged}", **fields), [])
        if shown != f"{kept}|{kept}":
            wrong.append(f"{text!r} became {shown!r}")
    assert not wrong


@pytest.mark.parametrize(
    "text", ["{summary}", "{middle_part_abridged}", "{x} {{", "\\1"]
)
def test_summary_template_values_may_hold_braces_and_placeholder_names(
    text: str,
) -> None:
    filled = render(node("{summary}/{middle_part_abridged}", summary_text=text), [])
    assert filled == f"{text}/wrote tests"


def test_summary_end_is_tagged_text_in_its_order() -> None:
    assert render(node("{end_part_full}"), []) == (
        "<exchange><user>Run it.</user><assistant>Running.</assistant>"
        '<tool_use name="launch" id="e1">{"x": 1}</tool_use></exchange>\n'
        '<exchange><tool_result id="e1" is_error="true">2 failed</tool_result>'
        "<assistant>Two fail.</assistant></exchange>"
    )


def test_summary_end_truncates_long_results_and_inputs_in_the_middle() -> None:
    long = '{"x": "' + "y" * 5000 + '"}'
    item = exchange(
        nodes=[result_node("e0", "h" * 20_000 + "reference id: 77")],
        calls=[call_node("e1", arguments=long)],
    )
    filled = render(node("{end_part_full}", history_end=[item]), [])
    assert "reference id: 77</tool_result>" in filled
    assert 7000 < filled.count("h") < 8100
    assert 1400 < filled.count("y") < 2100


@pytest.mark.parametrize("template", [None, "Now: {end_part_full}", "Now: {summary}"])
def test_results_beside_the_summary_become_a_further_exchange(template: Any) -> None:
    [text] = shown(
        result_node("e9", "30 passed"), summary_node(message_template=template)
    )
    beside = '<exchange><tool_result id="e9">30 passed</tool_result></exchange>'
    assert text.count(beside) == 1
    assert text.find(beside) > text.find("Two fail.")


def test_the_users_words_follow_the_summary() -> None:
    texts = shown(summary_node(message_template="S: {summary}"), text_node("Go.", 2))
    assert texts == ["S: Lexer done.", "Go."]


def test_the_summary_stands_where_its_node_stood() -> None:
    summary = {**summary_node(message_template="S: {summary}"), "id": 2}
    nodes = (text_node("Before.", 1), summary, text_node("After.", 3))
    assert shown(*nodes) == ["Before.", "S: Lexer done.", "After."]
    assert shown(*reversed(nodes)) == ["Before.", "S: Lexer done.", "After."]


def test_a_summary_that_says_nothing_leaves_no_empty_text() -> None:
    empty = summary_node(message_template="{summary}", summary_text="")
    assert shown(empty, image_node()) == []
