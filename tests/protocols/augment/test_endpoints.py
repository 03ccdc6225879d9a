"""Every path that a client of any year may call has its row."""

import pytest

from byok.protocols.augment.endpoints import ENDPOINTS, Endpoint, Local, Refused

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
    own = {row.path for row in ENDPOINTS if isinstance(row, Local) and row.own}
    assert alone == own | {"/token"}
    assert own == {path for path in ROWS if path.startswith("/byok/")}
