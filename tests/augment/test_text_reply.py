"""Raw text as chunks; what is of use only when whole is held until it is."""

import pytest

from byok.augment.chat_reply import chunk
from byok.augment.endings import Trimmed
from byok.augment.reply_job import ReplyFacts
from byok.augment.text_reply import TextLines, WholeObject, WholeText
from byok.chat import ToolCall
from byok.errors import NotReady, UpstreamGarbled
from byok.events import Finish, FinishReason, Notice, TextDelta, ThinkingDelta, Usage

STOP = Finish(FinishReason.STOP)


def lines(*, asked: bool = True, instead: str = "") -> TextLines:
    return TextLines(Trimmed(), ReplyFacts("r", ("b",)), asked=asked, instead=instead)


def test_text_leaves_as_it_comes_and_nothing_else_does() -> None:
    reply = lines()
    assert reply.first == {**chunk(), "unknown_blob_names": ["b"]}
    assert reply.feed(ThinkingDelta("hm")) == []
    assert reply.feed(TextDelta("\nOne ")) == [chunk("One")]
    assert reply.feed(ToolCall("1", "x", "{}")) == reply.feed(Usage(1, 1)) == []
    assert reply.feed(TextDelta("two\n")) == [chunk(" two")]
    reply.feed(STOP)
    [last] = reply.flush()
    assert last["stop_reason"] == 1
    assert "error" not in last


def test_a_broken_answer_keeps_its_text_and_says_nothing_in_it() -> None:
    reply = lines(instead="mine")
    reply.feed(TextDelta("One"))
    [last] = reply.fail(UpstreamGarbled("broke"))
    assert (last["text"], last["stop_reason"]) == ("", 0)
    assert last["error"]["message"] == "broke"


def test_an_answer_that_never_began_is_the_users_own_text() -> None:
    first, last = lines(instead="mine").fail(NotReady("stopping"))
    assert (first["text"], last["stop_reason"]) == ("mine", 1)


def test_text_reply_notices_stand_in_the_last_chunk() -> None:
    reply = lines()
    for event in (
        TextDelta("x"),
        Notice("By the way."),
        Notice("Cut.", "cut"),
        Notice("More.", "x"),
        STOP,
    ):
        reply.feed(event)
    [last] = reply.flush()
    assert last["error"] == {"code": "cut", "message": "Cut.", "request_id": "r"}


def test_text_reply_that_is_empty_is_an_error_if_something_was_asked() -> None:
    with pytest.raises(UpstreamGarbled):
        lines().flush()
    assert [line["text"] for line in lines(asked=False).flush()] == [""]


def test_a_whole_text_needs_the_models_last_word() -> None:
    for finish, code in (
        (None, "upstream_cut"),
        (Finish(FinishReason.LENGTH), "upstream_cut"),
        (STOP, ""),
    ):
        text = WholeText(Trimmed())
        text.feed(TextDelta(" x "))
        if finish:
            text.feed(finish)
        if code:
            with pytest.raises(UpstreamGarbled) as caught:
                text.whole()
            assert caught.value.code == code
        else:
            assert text.whole() == "x"


def test_an_object_has_the_text_and_the_facts() -> None:
    reply = WholeObject(Trimmed(), ReplyFacts("r", (), False))
    assert list(reply.feed(TextDelta("x"))) == list(reply.feed(STOP)) == []
    assert list(reply.flush()) == [
        {"text": "x", "unknown_blob_names": [], "checkpoint_not_found": True}
    ]
    with pytest.raises(NotReady):
        reply.fail_whole(NotReady("x"))
