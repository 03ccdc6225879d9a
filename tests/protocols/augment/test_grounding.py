"""Which chats get code, and where it is put."""

from typing import Any

import pytest

from byok.core.chat import ChatRequest, ContextPart, ImagePart, Message, Role, TextPart
from byok.core.code_query import BlobNames, CodeQuestion, to_bytes
from byok.protocols.augment.chat_job import code_question, with_passages
from byok.protocols.augment.chat_request import decode_chat
from tests.fakes.jobs import PLAIN

NAME = "a" * 64
BLOBS: dict[str, Any] = {"blobs": {"checkpoint_id": None, "added_blobs": [NAME]}}
RESULT = {
    "id": 1,
    "type": 1,
    "tool_result_node": {"tool_use_id": "c", "content": "42"},
}
PICTURE = {"id": 1, "type": 2, "image_node": {"image_data": "aGk=", "format": 1}}


def read(body: dict[str, Any]) -> CodeQuestion | None:
    return code_question(body, decode_chat(body, PLAIN))


def test_grounding_query_is_about_the_blobs_that_come_with_it() -> None:
    body = {"message": "Where?", **BLOBS, "user_guided_blobs": ["mine"]}
    found = read(body)
    assert found == CodeQuestion(
        "Where?", BlobNames("", (to_bytes(NAME),)), (to_bytes("mine"),)
    )


@pytest.mark.parametrize("mode", [None, "", "CHAT", "chat", "ASK", 7])
def test_grounding_applies_to_chats_of_any_mode(mode: Any) -> None:
    assert read({"message": "Where?", "mode": mode, **BLOBS})


@pytest.mark.parametrize(
    "fields",
    [
        {"mode": "AGENT"},
        {"mode": "CLI_AGENT"},
        {"silent": True},
        {"disable_retrieval": True},
        {"blobs": {"checkpoint_id": "", "added_blobs": [], "deleted_blobs": [NAME]}},
        {"message": ""},
        {"message": "", "nodes": [RESULT]},
        {"message": "And now?", "nodes": [RESULT]},
        {"message": "", "nodes": [PICTURE]},
    ],
    ids=str,
)
def test_grounding_skips_agents_that_search_and_empty_questions(
    fields: dict[str, Any],
) -> None:
    history = [{"request_message": "Where?", "response_text": "There."}]
    body = {"message": "Where?", "chat_history": history, **BLOBS, **fields}
    assert read(body) is None


CHAT = ChatRequest(
    (
        Message(Role.SYSTEM, (TextPart("Be kind."),)),
        Message(Role.USER, (TextPart("One?"),)),
        Message(Role.ASSISTANT, (TextPart("One."),)),
        Message(Role.USER, (ImagePart("image/png", "aGk="), TextPart("Two?"))),
    )
)


def test_grounding_puts_code_first_into_the_last_message() -> None:
    found = with_passages(CHAT, "code")
    assert found.messages[:-1] == CHAT.messages[:-1]
    last = found.messages[-1]
    assert last.role is Role.USER
    assert last.parts == (ContextPart("code"), *CHAT.messages[-1].parts)
    assert isinstance(last.parts[0], TextPart)  # so upstreams write it as text


@pytest.mark.parametrize(
    "chat",
    [
        ChatRequest(()),
        ChatRequest(CHAT.messages[:3]),
        ChatRequest((*CHAT.messages, Message(Role.TOOL, ()))),
    ],
)
def test_grounding_adds_nothing_where_no_question_stands_last(
    chat: ChatRequest,
) -> None:
    assert with_passages(chat, "code") is chat


def test_grounding_takes_a_thousand_attached_files_each_once() -> None:
    names = [f"{n:064x}" for n in range(3000)]
    body = {"message": "Where?", "user_guided_blobs": names * 2}
    found = read({**body, "user_specified_files": names})
    assert found is not None
    assert found.guided == tuple(map(to_bytes, names[:1000]))
