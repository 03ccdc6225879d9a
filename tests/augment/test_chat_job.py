"""A chat is streamed or whole; both begin with what is unknown of the blobs."""

import pytest

from byok.augment.chat_job import chat_lines, chat_object
from byok.augment.chat_reply import chunk
from byok.augment.job import Facts
from byok.errors import UpstreamGarbled
from byok.events import TextDelta
from tests.fakes.jobs import PLAIN, events, ignore, streamed, whole

BODY = {"message": "x"}
FACTS = Facts("r", ("b",), False)


def test_the_first_line_has_the_facts() -> None:
    reply = chat_lines(BODY, PLAIN, ignore).reply(FACTS)
    assert reply.first == {
        **chunk(),
        "unknown_blob_names": ["b"],
        "checkpoint_not_found": True,
    }
    assert (reply.heartbeat, reply.keeps_part) == (chunk(), True)


def test_the_object_is_the_chunks_joined() -> None:
    answer = events("One ", "two.")
    found = whole(chat_object, BODY, answer, FACTS)
    assert found["text"] == streamed(chat_lines, BODY, answer).text == "One two."
    assert (found["stop_reason"], found["unknown_blob_names"]) == (1, ["b"])


def test_a_whole_answer_that_broke_keeps_its_text_if_there_is_any() -> None:
    reply = chat_object(BODY, PLAIN, ignore).reply(FACTS)
    with pytest.raises(UpstreamGarbled):
        reply.failed(UpstreamGarbled("broke"))
    reply.feed(TextDelta("One"))
    found = reply.failed(UpstreamGarbled("broke"))
    assert found["text"] == "One\n[byok] broke"
    assert found["stop_reason"] == 0
    assert reply.left_out == []
