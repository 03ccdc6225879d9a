"""The assistant's turns: text, calls and thoughts, without byok's own lines."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.chat import Origin, ProviderData, TextPart, ThinkingPart, ToolCall
from byok.core.wire.encrypted_content import write_encrypted
from byok.protocols.augment.history import Block, read_reply, without_notices
from tests.fakes.bodies import call_node


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
def test_recorded_reply_text_is_found(item: dict[str, Any], said: str) -> None:
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
        pytest.param(None, [raw("a"), thought("h"), raw("b")], ["a", "(h)", "b"],
                     id="without response_text"),
        pytest.param("ab\n[byok] x", [raw("a"), call_node("1"), raw("b\n")],
                     ["a", "+1", "b"], id="without notices"),
        pytest.param("other", [raw("a"), call_node("1"), raw("b")], ["other", "+1"],
                     id="a text that is not that of the nodes"),
        pytest.param("a", [call_node("1"), thought("h")], ["a", "+1", "(h)"],
                     id="a text without a node"),
        pytest.param("a", [thought("h")], ["(h)", "a"], id="thoughts, then a text"),
        pytest.param("a\n", [raw("a"), call_node("1"), raw("\n")], ["a\n", "+1"],
                     id="white space after a text"),
        pytest.param("\na", [raw("\n"), call_node("1"), raw("a")], ["+1", "\na"],
                     id="white space before a text"),
        pytest.param(" \n", [raw(" "), call_node("1"), raw("\n")], ["+1"],
                     id="only white space"),
        pytest.param("a", [thought(""), {"type": 8}, raw("a")], ["a"],
                     id="empty thoughts"),
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
    ("written", "arguments"),
    [
        ('{"path": "a.py"}', '{"path": "a.py"}'),
        ('{ "n":1.0 }', '{ "n":1.0 }'),
        ('{"half": "\\ud83d"}', '{"half": "\\ud83d"}'),
        ("", "{}"), (None, "{}"), ("[1]", "{}"), ("5", "{}"), ('{"bad', "{}"),
        ({"path": "a"}, "{}"), ("[" * 5000, "{}"), ('{"x": NaN}', "{}"),
    ],
)  # fmt: skip
def test_recorded_tool_call_arguments_pass_verbatim_if_an_object(
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
        ("[byok] Waiting.\n\nHi.", "Hi."),
        ("[byok] Waiting.\n\n[byok] Again.\n\n Hi.\n[byok] One.", " Hi."),
        ("[byok] Waiting.\n\n\n[byok] It broke.", ""),
        ("Hi.\n[byok] Waiting.\n\nAnd", "Hi.\n[byok] Waiting.\n\nAnd"),
    ],
)
def test_recorded_notices_at_both_ends_are_dropped(said: str, kept: str) -> None:
    assert without_notices(said) == kept
