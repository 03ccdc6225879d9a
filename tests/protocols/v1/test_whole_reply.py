"""An answer as one object: made by the stage for pieces, or an error."""

from byok.core.chat import ChatRequest, ToolCall
from byok.core.events import StreamEvent, TextDelta
from byok.protocols.v1.block_reply import ReplyHead, WholeReply
from byok.protocols.v1.messages import MessageReply


def test_whole_reply_is_one_object() -> None:
    reply = WholeReply(MessageReply(ChatRequest(()), ReplyHead("1", "m")))
    calls = [ToolCall(name, "view", "{}") for name in "ab"]
    events: list[StreamEvent] = [TextDelta("Hi"), *calls]
    for event in events:
        assert reply.feed(event) == ()
    (whole,) = reply.flush()
    assert [block["type"] for block in whole["content"]] == ["text", "tool_use"]
    assert reply.omitted_tools == ["view"]
