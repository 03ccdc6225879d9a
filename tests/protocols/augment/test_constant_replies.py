"""Every constant answer is the smallest one that keeps clients calm."""

import json
from typing import Any

import pytest

from byok.core.routing import EndpointGroup
from byok.protocols.augment.constant_replies import QUIET, ConstantReply

ROWS = {row.path: row for row in QUIET}
NOTHING: tuple[str, ...] = (
    # side data
    "/save-chat", "/user-secrets/delete",
    "/notifications/mark-as-read", "/notifications/mark-read",
    "/agents/revoke-tool-access", "/indexed-commits/register-blobset",
    "/github/get-repo", "/get-billing-summary",
    # remote and cloud agents
    *(f"/remote-agents/{name}" for name in (
        "update", "delete", "logs", "interrupt", "pause", "resume", "resume-hint",
        "generate-summary", "add-ssh-key",
    )),
    # telemetry and feedback
    "/record-session-events", "/record-user-events", "/record-request-events",
    "/record-preference-sample", "/client-metrics", "/client-completion-timelines",
    "/report-feature-vector", "/report-error", "/chat-feedback", "/completion-feedback",
    "/next-edit-feedback", "/resolve-completions", "/resolve-chat-input-completion",
    "/resolve-edit", "/resolve-instruction", "/resolve-smart-paste",
    "/resolve-next-edit",
)  # fmt: skip
NO_AGENTS = '{"remote_agents":[],"max_remote_agents":0,"max_active_remote_agents":0}'
ANSWERS: dict[str, str] = {
    **dict.fromkeys(NOTHING, "{}"),
    "/agents/blob-status":
        '{"unknown_blob_names":[],"nonindexed_blob_names":[],'
        '"checkpoint_not_found":false}',
    "/indexed-commits/get-latest-blobset": '{"blobset":null,"commit":null}',
    "/agents/check-tool-safety": '{"is_safe":false}',
    "/agents/list-remote-tools": '{"tools":[]}',
    "/settings/get-tenant-tool-permissions":
        '{"tool_permissions_settings":{"rules":[]}}',
    "/chat/exchanges/list": '{"chat_history":[]}',
    "/context-canvas/list": '{"canvases":[],"next_page_token":""}',
    "/get-implicit-external-sources": '{"external_source_ids":[],"sources":[]}',
    "/search-external-sources": '{"sources":[],"results":[]}',
    "/user-secrets/list": '{"secrets":[]}',
    "/user-secrets/get": '{"secret":null,"found":false}',
    "/get-credit-info":
        '{"usage_units_remaining":1000000,"is_credit_balance_low":false,'
        '"display_info":{"usage_unit_display_name":"credits"}}',
    "/subscription-info":
        '{"subscription":{"ActiveSubscription":{"end_date":null,'
        '"usage_balance_depleted":false}},'
        '"feature_gating_info":{"feature_controls":[]}}',
    "/subscription-banner": '{"banner":null}',
    "/notifications/read": '{"notifications":[]}',
    "/github/is-user-configured": '{"is_configured":false}',
    "/github/list-repos": '{"repos":[]}',
    "/github/list-branches": '{"branches":[]}',
    "/remote-agents/list": NO_AGENTS,
    "/remote-agents/list-stream": NO_AGENTS,
    "/remote-agents/get-chat-history": '{"chat_history":[]}',
    "/cloud-agents/agents/list": '{"agents":[],"next_page_token":""}',
    "/cloud-agents/agents/get-messages": '{"messages":[]}',
    "/cloud-agents/agents/batch-get-message-counts": '{"message_counts":[]}',
}  # fmt: skip


@pytest.mark.parametrize("path", ANSWERS)
def test_a_constant_answer_is_the_smallest_that_is_known(path: str) -> None:
    assert ROWS[path].body == json.loads(ANSWERS[path])


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/remote-agents/list-stream", json.loads(NO_AGENTS)),
        ("/remote-agents/agent-history-stream", None),
    ],
)
def test_constant_stream_has_one_line_or_none(path: str, line: Any) -> None:
    group = EndpointGroup.AGENTS
    assert ROWS[path] == ConstantReply(path, line, group, stream=True)


def test_remote_tool_reply_fails_with_a_sentence() -> None:
    answer = ROWS["/agents/run-remote-tool"].body
    assert answer is not None
    assert answer["is_error"] is True
    assert answer["tool_output"] == ""
    assert answer["tool_result_message"].endswith(".")
    assert isinstance(answer["status"], int)


def test_token_reply_lasts_a_year_and_reveals_nothing() -> None:
    assert ROWS["/token"].body == {
        "access_token": "",
        "token_type": "Bearer",
        "expires_in": 31_536_000,
        "scope": "email profile offline_access",
    }
