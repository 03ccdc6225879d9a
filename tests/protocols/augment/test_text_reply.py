"""Text that is of use only when it is whole is held until it is."""

from typing import Any

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
from byok.core.routing import Purpose
from byok.protocols.augment.chat_job import chat_lines, chat_object
from byok.protocols.augment.chat_reply import StopReason, chunk
from byok.protocols.augment.chat_request import purpose_of_chat
from byok.protocols.augment.positions import Trimmer, region
from byok.protocols.augment.remarks import FenceRemover
from byok.protocols.augment.reply_job import ReplyFacts
from byok.protocols.augment.text_reply import ReplacementLines, TextLines, WholeObject
from tests.fakes.jobs import PLAIN

STOP = Finish(FinishReason.STOP)


def lines(*, asked: bool = True, instead: str = "") -> TextLines:
    facts = ReplyFacts("r", ("b",), is_asked=asked)
    return TextLines(Trimmer(), facts, instead=instead)


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
    reply = WholeObject(Trimmer(), ReplyFacts("r", (), False))
    assert list(reply.feed(TextDelta("x"))) == list(reply.feed(STOP)) == []
    assert list(reply.flush()) == [
        {"text": "x", "unknown_blob_names": [], "checkpoint_not_found": True}
    ]
    with pytest.raises(NotReady):
        reply.fail_whole(NotReady("x"))


# A replacement begins with its place, and is never empty or half


PLACE = region("a\nb\nc\n", 2, "b\n")


def reply() -> ReplacementLines:
    return ReplacementLines(FenceRemover(), PLACE, ReplyFacts("r", ("blob",)))


def test_replacement_region_comes_first_and_once() -> None:
    lines = reply()
    assert lines.first is None
    assert not [*lines.feed(ThinkingDelta("hm")), *lines.feed(TextDelta("\n"))]
    first, text = lines.feed(TextDelta(" x"))
    assert first == {
        "text": "",
        "replacement_start_line": 2,
        "replacement_end_line": 2,
        "replacement_old_text": "b\n",
        "unknown_blob_names": ["blob"],
        "checkpoint_not_found": False,
    }
    assert text == {"text": "\n x", "replacement_text": "\n x"}
    assert lines.feed(TextDelta("y")) == [{"text": "y", "replacement_text": "y"}]
    assert not list(lines.feed(Notice("hm", "x")))
    lines.feed(Finish(FinishReason.STOP))
    assert lines.flush() == []


@pytest.mark.parametrize("said", ["", " \n", "```\n```"])
def test_nothing_said_is_no_replacement(said: str) -> None:
    lines = reply()
    assert lines.feed(TextDelta(said)) == []
    lines.feed(Finish(FinishReason.STOP))
    with pytest.raises(UpstreamGarbled, match="empty answer"):
        lines.flush()


@pytest.mark.parametrize(
    "finish", [None, FinishReason.LENGTH, FinishReason.CONTENT_FILTER]
)
def test_replacement_of_a_cut_answer_fails(finish: FinishReason | None) -> None:
    lines = reply()
    lines.feed(TextDelta("x"))
    if finish is not None:
        lines.feed(Finish(finish))
    with pytest.raises(UpstreamGarbled):
        lines.flush()


@pytest.mark.parametrize("finish", [FinishReason.STOP, FinishReason.TOOL_CALLS])
def test_replacement_of_an_answer_that_failed_says_why(finish: FinishReason) -> None:
    lines = reply()
    lines.feed(Notice("The call was cut.", "tool_call_incomplete"))
    lines.feed(Finish(finish))
    with pytest.raises(UpstreamGarbled) as caught:
        lines.flush()
    assert caught.value.code == "tool_call_incomplete"


def test_replacement_of_a_failure_has_no_text() -> None:
    [last] = reply().fail(UpstreamGarbled("broke", code="x"))
    assert last["text"] == ""
    assert last["error"] == {"code": "x", "message": "broke", "request_id": "r"}
    assert not any(key.startswith("replacement") for key in last)


# Jobs that clients do by silent chats are told apart


ENHANCE = "Do not use tools. Reply with <augment-enhanced-prompt>..."


def node(content: Any) -> dict[str, Any]:
    return {"id": 1, "type": 0, "text_node": {"content": content}}


@pytest.mark.parametrize(
    ("body", "purpose"),
    [
        ({"message": ENHANCE}, Purpose.CHAT),
        ({"message": ENHANCE, "silent": True}, Purpose.ENHANCE),
        ({"nodes": [node(ENHANCE)], "silent": True}, Purpose.ENHANCE),
        ({"message": "Summarise.", "silent": True}, Purpose.SUMMARY),
        ({"silent": True}, Purpose.SUMMARY),
        ({"silent": True, "message": [ENHANCE], "nodes": [node([ENHANCE]), 7, {}]},
         Purpose.SUMMARY),
    ],
    ids=str,
)  # fmt: skip
def test_a_silent_chat_has_a_purpose(body: dict[str, Any], purpose: Purpose) -> None:
    assert purpose_of_chat(body) is purpose


JOB = {"message": "Sum up.", "silent": True}


def test_a_background_job_gets_its_answer_whole_or_an_error() -> None:
    reply = chat_lines(JOB, PLAIN).reply(ReplyFacts("r"))
    for event in (TextDelta("One "), ToolCall("1", "x", "{}"), TextDelta("two"), STOP):
        assert not list(reply.feed(event))
    assert "".join(told["text"] for told in reply.flush()) == "One two"

    reply = chat_lines(JOB, PLAIN).reply(ReplyFacts("r"))
    reply.feed(TextDelta("One"))
    with pytest.raises(UpstreamGarbled):
        list(reply.flush())
    [last] = reply.fail(UpstreamGarbled("broke"))
    assert (last["text"], last["error"]["message"]) == ("", "broke")

    whole = chat_object(JOB, PLAIN).reply(ReplyFacts("r"))
    whole.feed(TextDelta("One"))
    with pytest.raises(UpstreamGarbled):
        whole.fail_whole(UpstreamGarbled("broke"))
