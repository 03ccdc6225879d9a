"""The answer of a completion: one item or none, and what is told besides."""

from typing import Any

from byok.core.errors import UpstreamGarbled
from byok.core.events import Finish, FinishReason, TextDelta, ThinkingDelta
from byok.protocols.augment.completion import CompletionObject, Cursor, Cutter
from byok.protocols.augment.remarks import Unfenced
from byok.protocols.augment.reply_job import ReplyFacts

CURSOR = Cursor("def f():\n    ", "\n")
REST = {
    "unknown_blob_names": ["b1"],
    "unknown_memory_names": ["b1"],
    "checkpoint_not_found": True,
    "suggested_prefix_char_count": 8000,
    "suggested_suffix_char_count": 4000,
    "completion_timeout_ms": 5000,
}
NOTHING = {"completion_items": [], "text": "", **REST}


def reply(*said: str) -> CompletionObject:
    facts = ReplyFacts("r-1", ("b1",), checkpoint_found=False)
    made = CompletionObject(Cutter(CURSOR, Unfenced()), CURSOR, facts)
    assert not made.feed(ThinkingDelta("hm"))
    for text in said:
        assert not made.feed(TextDelta(text))
    return made


def item(text: str) -> dict[str, Any]:
    one = {"text": text, "suffix_replacement_text": "", "skipped_suffix": ""}
    return {"completion_items": [one], "text": text, **REST}


def test_completion_reply_is_one_item() -> None:
    made = reply("return", " 1")
    made.feed(Finish(FinishReason.LENGTH))
    assert list(made.flush()) == [item("return 1")]
    assert made.text == "return 1"


def test_completion_reply_cut_by_length_has_whole_lines() -> None:
    made = reply("return 1\n    # all p")
    made.feed(Finish(FinishReason.LENGTH))
    assert list(made.flush()) == [item("return 1")]


def test_completion_reply_without_text_has_no_item() -> None:
    for said in ("", " \n", "\n\n"):
        assert list(reply(said).flush()) == [NOTHING]


def test_completion_reply_of_a_failure_has_no_item() -> None:
    made = reply("return 1\n")
    assert made.fail_whole(UpstreamGarbled("no")) == NOTHING
    assert made.text == ""


def test_completion_reply_cut_by_a_content_filter_has_no_item() -> None:
    made = reply("return 1\n")
    made.feed(Finish(FinishReason.CONTENT_FILTER))
    assert list(made.flush()) == [NOTHING]


def test_completion_reply_at_the_deadline_has_whole_lines() -> None:
    assert reply("return 1\n    #").in_time() == item("return 1")
    assert reply("return 1").in_time() == NOTHING


def test_completion_reply_says_when_enough_came() -> None:
    made = reply("return 1\n")
    assert not made.enough
    made.feed(TextDelta("\ndef g():\n"))
    assert made.enough
