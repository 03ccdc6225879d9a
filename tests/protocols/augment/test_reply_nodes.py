"""Nodes are numbered as they are written, and calls stand in their places."""

from byok.core.chat import Json
from byok.protocols.augment.chat_reply import NodeDraft, NodeWriter
from byok.protocols.augment.nodes import ResponseNode

TEXT = NodeDraft(ResponseNode.RAW_RESPONSE, "a")
CALL = NodeDraft(ResponseNode.TOOL_USE, "", {"tool_use": {"tool_use_id": "c"}})


def node(number: int, draft: NodeDraft) -> Json:
    head = {"id": number, "type": draft.kind, "content": draft.content}
    return {**head, **draft.payload}


def test_nodes_are_written_at_once_and_numbered() -> None:
    writer = NodeWriter()
    assert writer.is_empty
    assert list(writer.write(TEXT, CALL)) == [node(1, TEXT), node(2, CALL)]
    assert list(writer.write_call("c", CALL)) == [node(3, CALL)]
    assert list(writer.release()) == []
    assert not writer.is_empty


def test_nodes_behind_an_open_call_wait_for_it() -> None:
    writer = NodeWriter()
    writer.reserve("c")
    assert list(writer.write(TEXT)) == []
    assert list(writer.write_call("other", CALL, CALL)) == []
    assert list(writer.write_call("c", CALL)) == []
    assert not writer.is_empty
    written = list(writer.release())
    expected = [CALL, TEXT, CALL, CALL]
    assert written == [node(n, draft) for n, draft in enumerate(expected, 1)]
    assert list(writer.write(TEXT)) == [node(5, TEXT)]


def test_reply_nodes_without_the_reserved_call_stay_empty() -> None:
    writer = NodeWriter()
    writer.reserve("c")
    assert writer.is_empty
    assert list(writer.release()) == []
