"""Text that is of use only when it is whole is held until it is."""

import pytest

from byok.core.chat import ToolCall
from byok.core.errors import NotReady, UpstreamGarbled
from byok.core.events import (
    Finish,
    FinishReason,
    Notice,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from byok.protocols.augment.chat_reply import StopReason, chunk
from byok.protocols.augment.positions import Trimmed
from byok.protocols.augment.reply_job import ReplyFacts
from byok.protocols.augment.text_reply import TextLines, WholeObject

STOP = Finish(FinishReason.STOP)


def lines(*, asked: bool = True, instead: str = "") -> TextLines:
    return TextLines(Trimmed(), ReplyFacts("r", ("b",)), asked=asked, instead=instead)


def test_text_leaves_when_it_is_whole_and_nothing_else_does() -> None:
    reply = lines()
    assert reply.first == {**chunk(), "unknown_blob_names": ["b"]}
    for event in (
        ThinkingDelta("hm"),
        TextDelta("\nOne "),
        ToolCall("1", "x", "{}"),
        Notice("By the way."),
        Usage(1, 1),
        TextDelta("two\n"),
        STOP,
    ):
        assert not list(reply.feed(event))
    said, last = reply.flush()
    assert (said, last) == (chunk("One two"), chunk(stop=StopReason.END_TURN))


def test_a_part_of_a_text_never_leaves() -> None:
    for instead in ("mine", ""):
        reply = lines(instead=instead)
        assert not reply.keeps_part
        reply.feed(TextDelta("One"))
        [last] = reply.fail(UpstreamGarbled("broke"))
        assert (last["text"], last["stop_reason"]) == (instead, 0)
        assert last["error"]["message"] == "broke"


def test_a_text_that_is_cut_or_empty_is_an_error_if_something_was_asked() -> None:
    wrong: list[str] = []
    for events, code in (
        ((STOP,), "upstream_empty"),
        ((TextDelta("x"),), "upstream_cut"),
        ((TextDelta("x"), Finish(FinishReason.LENGTH)), "upstream_cut"),
        ((TextDelta("x"), Finish(FinishReason.CONTENT_FILTER)), "upstream_cut"),
        ((TextDelta("x"), Finish(FinishReason.TOOL_CALLS)), "upstream_cut"),
        ((Notice("Filtered.", "filter"), Finish(FinishReason.LENGTH)), "filter"),
        ((Notice("Lost.", "lost"), Notice("More.", "more"), STOP), "lost"),
    ):
        reply = lines()
        for event in events:
            reply.feed(event)
        with pytest.raises(UpstreamGarbled) as caught:
            list(reply.flush())
        if caught.value.code != code:
            wrong.append(f"{events}: {caught.value.code}")
    assert not wrong
    assert [line["text"] for line in lines(asked=False).flush()] == [""]


def test_an_object_has_the_text_and_the_facts() -> None:
    reply = WholeObject(Trimmed(), ReplyFacts("r", (), False))
    assert list(reply.feed(TextDelta("x"))) == list(reply.feed(STOP)) == []
    assert list(reply.flush()) == [
        {"text": "x", "unknown_blob_names": [], "checkpoint_not_found": True}
    ]
    with pytest.raises(NotReady):
        reply.fail_whole(NotReady("x"))
