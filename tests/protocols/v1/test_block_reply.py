"""Events become blocks: when they open and close, and what counts as none."""

from collections.abc import Iterable
from typing import Any

import pytest

from byok.core.chat import Json, Origin, ProviderData, ToolCall
from byok.core.errors import ByokError, UpstreamGarbled
from byok.core.events import (
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
)
from byok.protocols.v1.block_reply import BlockReply, ReplyHead, WholeReply
from byok.protocols.v1.messages import MessageReply

CALL = ToolCall("a", "view", "{}")
TOOLS = Finish(FinishReason.TOOL_CALLS)


class Words(BlockReply):
    """Writes each call of its methods as one word."""

    def _write_beginning(self) -> Iterable[Json]:
        return ({"w": "begin"},)

    def _open_text(self) -> Iterable[Json]:
        return ({"w": "text("},)

    def _write_text(self, text: str) -> Json:
        return {"w": repr(text)}

    def _close_text(self, text: str) -> Iterable[Json]:
        return ({"w": f"){text!r}"},)

    def _open_thinking(self) -> Iterable[Json]:
        return ({"w": "think("},)

    def _write_thinking(self, text: str) -> Iterable[Json]:
        return ({"w": repr(text)},)

    def _close_thinking(
        self, text: str, provider_data: ProviderData | None
    ) -> Iterable[Json]:
        return ({"w": f"){text!r}{'+' if provider_data else ''}"},)

    def _write_call(self, call: ToolCall) -> Iterable[Json]:
        return ({"w": f"call {call.id} {self.calls}"},)

    def _write_end(self) -> Iterable[Json]:
        return ({"w": f"end {self.finish.value}"},)

    def _write_failure(self, error: ByokError) -> Iterable[Json]:
        return ({"w": f"failed {error.code}"},)

    def whole(self) -> dict[str, Any]:
        return {"calls": self.calls}


def reply() -> Words:
    return Words(ReplyHead("1", "m"))


def words(made: Words, *events: StreamEvent) -> str:
    lines = [line["w"] for event in events for line in made.feed(event)]
    return " ".join([*lines, *(line["w"] for line in made.flush())])


def test_block_reply_white_space_is_no_block() -> None:
    assert words(reply(), TextDelta("\n"), TextDelta(" "), CALL, TOOLS) == (
        "begin call a 0 end tool_calls"
    )
    assert words(reply(), TextDelta("\n"), TextDelta("a")) == (
        "begin text( '\\na' )'\\na' end stop"
    )
    assert words(reply(), ThinkingDelta("")) == "begin end stop"


def test_block_reply_a_dropped_call_is_an_error_but_at_the_limit() -> None:
    dropped = Notice("The call was dropped.", "tool_call_invalid")
    with pytest.raises(UpstreamGarbled, match="dropped") as caught:
        words(reply(), dropped, dropped, TOOLS)
    assert caught.value.code == "tool_call_invalid"
    at_limit = words(reply(), dropped, Finish(FinishReason.LENGTH))
    assert at_limit == "begin end length"


RESTART = Notice("Asked again.", is_restart=True)
SIGNED = ProviderData(Origin("d", "u", "m"), {"signature": "x"})


def test_block_reply_thoughts_that_are_void_are_a_block_of_their_own() -> None:
    again = (ThinkingDelta("old"), RESTART, ThinkingDelta("new", SIGNED))
    assert words(reply(), *again, TextDelta("a")) == (
        "begin think( 'old' )'old' think( 'new' )'new'+ text( 'a' )'a' end stop"
    )


def test_whole_reply_has_no_thoughts_that_are_void() -> None:
    pieces = MessageReply(ReplyHead("1", "m"), shows_thinking=True)
    whole = WholeReply(pieces)
    for event in (ThinkingDelta("old"), RESTART, ThinkingDelta("new", SIGNED)):
        whole.feed(event)
    [message] = whole.flush()
    assert [block["thinking"] for block in message["content"]] == ["new"]


# An answer as one object: made by the stage for pieces, or an error


def test_whole_reply_is_one_object() -> None:
    reply = WholeReply(MessageReply(ReplyHead("1", "m")))
    for event in (TextDelta("Hi"), CALL):
        assert reply.feed(event) == ()
    (whole,) = reply.flush()
    assert [block["type"] for block in whole["content"]] == ["text", "tool_use"]
