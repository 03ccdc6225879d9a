"""A chat is streamed or whole; both begin with what is unknown of the blobs."""

from typing import Any

import pytest

from byok.core.code_query import FileChunk
from byok.core.errors import UpstreamGarbled
from byok.core.events import TextDelta
from byok.protocols.augment.chat_job import chat_lines, chat_object
from byok.protocols.augment.chat_reply import chunk
from byok.protocols.augment.reply_job import ReplyFacts
from tests.fakes.jobs import PLAIN, STATE, events, whole

BODY = {"message": "x"}
FACTS = ReplyFacts("r", ("b",), False)


def test_chat_stream_first_line_has_the_facts() -> None:
    reply = chat_lines(BODY, PLAIN, STATE).reply(FACTS)
    assert reply.first == {
        **chunk(),
        "unknown_blob_names": ["b"],
        "checkpoint_not_found": True,
    }
    assert (reply.heartbeat, reply.keeps_part) == (chunk(), True)


def test_chat_object_of_a_broken_answer_keeps_its_text() -> None:
    reply = chat_object(BODY, PLAIN, STATE).reply(FACTS)
    with pytest.raises(UpstreamGarbled):
        reply.fail_whole(UpstreamGarbled("broke"))
    reply.feed(TextDelta("One"))
    found = reply.fail_whole(UpstreamGarbled("broke"))
    assert found["text"] == "One\n[byok] broke"
    assert found["stop_reason"] == 0
    assert reply.omitted_tools == []


def test_chat_stream_first_line_names_the_places_of_retrieved_code() -> None:
    facts = ReplyFacts("r", chunks=(FileChunk("b", 1, 5),))
    chunks = [{"char_start": 1, "char_end": 5, "blob_name": "b"}]
    reply = chat_lines(BODY, PLAIN, STATE).reply(facts)
    assert reply.first == {**chunk(), "workspace_file_chunks": chunks}
    found = whole(chat_object, BODY, events("One."), facts)
    assert found["workspace_file_chunks"] == chunks


@pytest.mark.parametrize("decode", [chat_lines, chat_object])
def test_a_chat_says_which_code_it_is_about(decode: Any) -> None:
    body = {"message": "Where?", "user_guided_blobs": ["b"]}
    assert decode(body, PLAIN, STATE).wanted.question == "Where?"
    assert decode(BODY, PLAIN, STATE).wanted is None
