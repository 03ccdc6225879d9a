"""Every path that a client of any year may call has its row."""

from typing import Any

import pytest

from byok.core.errors import BadRequest
from byok.core.routing import EndpointGroup
from byok.protocols.augment.constant_replies import ConstantReply
from byok.protocols.augment.endpoints import (
    CHECKPOINT,
    ENDPOINTS,
    Endpoint,
    Generate,
    Local,
    Refused,
    off_answer,
)

ROWS: dict[str, Endpoint] = {row.path: row for row in ENDPOINTS}

KNOWN = """
    /get-models /chat /chat-stream /completion /chat-input-completion /edit
    /instruction-stream /smart-paste-stream /next-edit-stream /next_edit_loc
    /prompt-enhancer /generate-commit-message-stream /generate-conversation-title
    /find-missing /batch-upload /checkpoint-blobs /agents/codebase-retrieval
    /agents/codebase-retrieval-raw /agents/blob-status
    /indexed-commits/get-latest-blobset /indexed-commits/register-blobset /memorize
    /agents/check-tool-safety /agents/list-remote-tools /agents/run-remote-tool
    /agents/revoke-tool-access /agents/edit-file
    /settings/get-tenant-tool-permissions /save-chat /chat/exchanges/list
    /context-canvas/list /get-implicit-external-sources /search-external-sources
    /user-secrets/list /user-secrets/get /user-secrets/upsert /user-secrets/delete
    /token /get-credit-info /get-billing-summary /subscription-info
    /subscription-banner /notifications/read /notifications/mark-as-read
    /notifications/mark-read /github/is-user-configured /github/list-repos
    /github/list-branches /github/get-repo /remote-agents/list
    /remote-agents/list-stream /remote-agents/agent-history-stream
    /remote-agents/get-chat-history /remote-agents/create /remote-agents/update
    /remote-agents/delete /remote-agents/chat /remote-agents/logs
    /remote-agents/interrupt /remote-agents/pause /remote-agents/resume
    /remote-agents/resume-hint /remote-agents/generate-summary
    /remote-agents/add-ssh-key /cloud-agents/agents/list /cloud-agents/agents/create
    /cloud-agents/agents/get-messages /cloud-agents/agents/batch-get-message-counts
    /cloud-agents/agents/send-message /cloud-agents/agents/rename
    /cloud-agents/agents/delete /cloud-agents/agents/update-session-config
    /cloud-agents/agents/update-tags /cloud-experts/experts/create-agent
    /record-session-events /record-user-events /record-request-events
    /record-preference-sample /client-metrics /client-completion-timelines
    /report-feature-vector /report-error /chat-feedback /completion-feedback
    /next-edit-feedback /resolve-completions /resolve-chat-input-completion
    /resolve-edit /resolve-instruction /resolve-smart-paste /resolve-next-edit
"""


@pytest.mark.parametrize("path", KNOWN.split())
def test_endpoint_table_has_a_row_for_each_path_that_clients_call(path: str) -> None:
    assert path in ROWS


def test_endpoint_refusals_have_no_status_that_clients_retry() -> None:
    for row in ENDPOINTS:
        if isinstance(row, Refused):
            assert 400 <= row.status < 500
            assert row.status not in (429, 499)


def test_endpoint_group_of_every_path_but_byoks_own() -> None:
    alone = {row.path for row in ENDPOINTS if row.group is None}
    own = {row.path for row in ENDPOINTS if isinstance(row, Local) and row.for_owner}
    assert alone == own | {"/token"}
    assert own == {path for path in ROWS if path.startswith("/byok/")}


GROUPS = set(EndpointGroup) - {EndpointGroup.MODELS}  # it cannot be off

BODY = {
    "message": "Say it.",
    "prompt": "Say it.",
    "selected_text": "a",
    "file_contents": "keep me",
    "target_file_content": "a\n",
    "code_block": "b",
}


OFF = [
    path
    for path, row in ROWS.items()
    if isinstance(row, (Generate, Local)) and row.group in GROUPS
]


def off(path: str, body: dict[str, Any] | None = None) -> ConstantReply:
    row = ROWS[path]
    assert isinstance(row, (Generate, Local)) and row.group
    return off_answer(row, row.group, BODY if body is None else body, "id-1")


@pytest.mark.parametrize("path", OFF)
@pytest.mark.parametrize("body", [BODY, {}], ids=["usual", "empty"])
def test_disabled_endpoints_all_answer_or_say_why_not(
    path: str, body: dict[str, Any]
) -> None:
    try:
        answer = off(path, body)
    except BadRequest as error:
        assert isinstance(ROWS[path], Generate)
        assert error.status == 422
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
    assert off("/checkpoint-blobs").lines == ({"new_checkpoint_id": CHECKPOINT},)
    [answer] = off("/agents/codebase-retrieval").lines
    assert "context is disabled" in answer["formatted_retrieval"]
