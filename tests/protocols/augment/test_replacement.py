"""A replacement begins with its place, and is never empty or half."""

import pytest

from byok.core.errors import UpstreamGarbled
from byok.core.events import Finish, FinishReason, Notice, TextDelta, ThinkingDelta
from byok.protocols.augment.positions import region
from byok.protocols.augment.remarks import Unfenced
from byok.protocols.augment.reply_job import ReplyFacts
from byok.protocols.augment.text_reply import ReplacementLines

PLACE = region("a\nb\nc\n", 2, "b\n")


def reply() -> ReplacementLines:
    return ReplacementLines(Unfenced(), PLACE, ReplyFacts("r", ("blob",)))


def test_replacement_region_comes_first_and_once() -> None:
    lines = reply()
    assert lines.first is None
    assert lines.feed(ThinkingDelta("hm")) == lines.feed(TextDelta("\n")) == []
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
    assert lines.feed(Notice("hm", "x")) == []
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


def test_replacement_of_a_failure_has_no_text() -> None:
    [last] = reply().fail(UpstreamGarbled("broke", code="x"))
    assert last["text"] == ""
    assert last["error"] == {"code": "x", "message": "broke", "request_id": "r"}
    assert not any(key.startswith("replacement") for key in last)
