"""What is switched off answers, and does no harm."""

from typing import Any

import pytest

from byok.core.errors import BadRequest
from byok.core.routing import EndpointGroup
from byok.protocols.augment.endpoints import (
    CHECKPOINT,
    ENDPOINTS,
    Endpoint,
    Generate,
    Off,
    Refused,
    off_answer,
)

ROWS: dict[str, Endpoint] = {row.path: row for row in ENDPOINTS}
GROUPS = set(EndpointGroup) - {EndpointGroup.MODELS}  # it cannot be off
BODY = {
    "message": "Say it.",
    "prompt": "Say it.",
    "selected_text": "a",
    "file_contents": "keep me",
    "target_file_content": "a\n",
    "code_block": "b",
}


def off(path: str, body: dict[str, Any] | None = None) -> Off:
    group = ROWS[path].group
    assert group
    return off_answer(ROWS[path], group, BODY if body is None else body, "id-1")


@pytest.mark.parametrize("path", [p for p in ROWS if ROWS[p].group in GROUPS])
@pytest.mark.parametrize("body", [BODY, {}], ids=["usual", "empty"])
def test_disabled_endpoints_all_answer_or_say_why_not(
    path: str, body: dict[str, Any]
) -> None:
    try:
        answer = off(path, body)
    except BadRequest as error:
        assert isinstance(ROWS[path], (Generate, Refused))
        assert error.status in (403, 404, 422)
    else:
        assert answer.stream is getattr(ROWS[path], "stream", False)
        assert answer.stream or len(answer.lines) == 1


def test_disabled_chat_stream_says_so_outside_of_the_models_words() -> None:
    first, *middle, last = off("/chat-stream").lines
    assert first["text"] == ""
    assert [line["text"][:8] for line in middle] == ["\n[byok] "]
    assert (last["stop_reason"], last["error"]["request_id"]) == (1, "id-1")


def test_disabled_edit_file_returns_the_file_unchanged() -> None:
    [answer] = off("/agents/edit-file").lines
    assert (answer["modified_file_contents"], answer["is_error"]) == ("keep me", True)


@pytest.mark.parametrize(
    "path",
    [
        *("/chat", "/edit", "/instruction-stream", "/smart-paste-stream"),
        *("/prompt-enhancer", "/generate-commit-message-stream"),
    ],
)
def test_disabled_edit_is_refused(path: str) -> None:
    with pytest.raises(BadRequest) as caught:
        off(path)
    assert (caught.value.code, caught.value.status) == ("switched_off", 422)
    assert not caught.value.retryable
    assert "[routing.official]" in caught.value.hint


@pytest.mark.parametrize("path", ["/completion", "/chat-input-completion"])
def test_disabled_completion_is_an_empty_answer(path: str) -> None:
    [answer] = off(path).lines
    assert answer["completion_items"] == []


def test_disabled_find_missing_reports_nothing_missing() -> None:
    [answer] = off("/find-missing", {"mem_object_names": ["a", "b"]}).lines
    assert set(answer) == {
        "unknown_memory_names",
        "unknown_blob_names",
        "nonindexed_blob_names",
    }
    assert not any(answer.values())


def test_disabled_upload_acknowledges_each_blob_at_its_place() -> None:
    blobs = [{"blob_name": "b", "content": "x"}, {"blob_name": "a"}, {}, "odd"]
    [answer] = off("/batch-upload", {"blobs": blobs}).lines
    assert answer == {"blob_names": ["b", "a", "", ""]}


def test_disabled_checkpoint_and_retrieval_have_the_fields_that_sdks_need() -> None:
    assert off("/checkpoint-blobs").lines == [{"new_checkpoint_id": CHECKPOINT}]
    [answer] = off("/agents/codebase-retrieval").lines
    assert "context is disabled" in answer["formatted_retrieval"]
