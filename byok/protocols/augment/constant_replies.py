"""Endpoints with a fixed reply, so that clients neither retry nor report errors."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from byok.core.chat import Json
from byok.core.routing import EndpointGroup


class ConstantReply(Struct, frozen=True):
    """An endpoint with a fixed reply; in a stream `body` is its only line, or None."""

    path: str
    body: Json | None
    group: EndpointGroup | None = None
    stream: bool = False


_EMPTY: dict[str, Any] = {}
_NO_REMOTE_AGENTS = {
    "remote_agents": [],
    "max_remote_agents": 0,
    "max_active_remote_agents": 0,
}
_SWALLOWED: Mapping[EndpointGroup, tuple[str, ...]] = {
    EndpointGroup.TELEMETRY: (
        "/record-session-events",
        "/record-user-events",
        "/record-request-events",
        "/record-preference-sample",
        "/client-metrics",
        "/client-completion-timelines",
        "/report-feature-vector",
        "/report-error",
        "/chat-feedback",
        "/completion-feedback",
        "/next-edit-feedback",
        "/resolve-completions",
        "/resolve-chat-input-completion",
        "/resolve-edit",
        "/resolve-instruction",
        "/resolve-smart-paste",
        "/resolve-next-edit",
    ),
    EndpointGroup.CHAT: ("/save-chat",),
    EndpointGroup.ACCOUNT: (
        "/user-secrets/delete",
        "/notifications/mark-as-read",
        "/notifications/mark-read",
        "/github/get-repo",
        "/get-billing-summary",
    ),
    EndpointGroup.CONTEXT: (
        "/memorize",  # the oldest upload call; no current client makes it
        "/indexed-commits/register-blobset",
    ),
    EndpointGroup.AGENTS: (
        "/agents/revoke-tool-access",
        "/remote-agents/update",
        "/remote-agents/delete",
        "/remote-agents/logs",
        "/remote-agents/interrupt",
        "/remote-agents/pause",
        "/remote-agents/resume",
        "/remote-agents/resume-hint",
        "/remote-agents/generate-summary",
        "/remote-agents/add-ssh-key",
    ),
}

QUIET: tuple[ConstantReply, ...] = (
    *(
        ConstantReply(path, _EMPTY, group)
        for group, paths in _SWALLOWED.items()
        for path in paths
    ),
    # agents
    # byok cannot judge a call: "not safe" makes the client ask its user.
    ConstantReply(
        "/agents/check-tool-safety", {"is_safe": False}, group=EndpointGroup.AGENTS
    ),
    ConstantReply(
        "/agents/list-remote-tools", {"tools": []}, group=EndpointGroup.AGENTS
    ),
    ConstantReply(
        "/agents/run-remote-tool",
        {
            "tool_output": "",
            "tool_result_message": "byok serves no remote tools.",
            "is_error": True,
            "status": 0,
        },
        group=EndpointGroup.AGENTS,
    ),
    ConstantReply(
        "/agents/blob-status",
        {
            "unknown_blob_names": [],
            "nonindexed_blob_names": [],
            "checkpoint_not_found": False,
        },
        group=EndpointGroup.CONTEXT,
    ),
    ConstantReply(
        "/settings/get-tenant-tool-permissions",
        {"tool_permissions_settings": {"rules": []}},
        group=EndpointGroup.AGENTS,
    ),
    ConstantReply(
        "/indexed-commits/get-latest-blobset",
        {"blobset": None, "commit": None},
        group=EndpointGroup.CONTEXT,
    ),
    # chat side data; where sources differ on a name, both are sent
    ConstantReply(
        "/chat/exchanges/list", {"chat_history": []}, group=EndpointGroup.CHAT
    ),
    ConstantReply(
        "/context-canvas/list",
        {"canvases": [], "next_page_token": ""},
        group=EndpointGroup.CHAT,
    ),
    ConstantReply(
        "/get-implicit-external-sources",
        {"external_source_ids": [], "sources": []},
        group=EndpointGroup.CHAT,
    ),
    ConstantReply(
        "/search-external-sources",
        {"sources": [], "results": []},
        group=EndpointGroup.CHAT,
    ),
    ConstantReply("/user-secrets/list", {"secrets": []}, group=EndpointGroup.ACCOUNT),
    ConstantReply(
        "/user-secrets/get",
        {"secret": None, "found": False},
        group=EndpointGroup.ACCOUNT,
    ),
    # account
    ConstantReply(
        "/token",
        {
            "access_token": "",
            "token_type": "Bearer",
            "expires_in": 31_536_000,
            "scope": "email profile offline_access",
        },
    ),
    ConstantReply(
        "/get-credit-info",
        {
            "usage_units_remaining": 1_000_000,
            "is_credit_balance_low": False,
            "display_info": {"usage_unit_display_name": "credits"},
        },
        group=EndpointGroup.ACCOUNT,
    ),
    ConstantReply(
        "/subscription-info",
        {
            "subscription": {
                "ActiveSubscription": {
                    "end_date": None,
                    "usage_balance_depleted": False,
                }
            },
            "feature_gating_info": {"feature_controls": []},
        },
        group=EndpointGroup.ACCOUNT,
    ),
    ConstantReply(
        "/subscription-banner", {"banner": None}, group=EndpointGroup.ACCOUNT
    ),
    ConstantReply(
        "/notifications/read", {"notifications": []}, group=EndpointGroup.ACCOUNT
    ),
    # source hosting
    ConstantReply(
        "/github/is-user-configured",
        {"is_configured": False},
        group=EndpointGroup.ACCOUNT,
    ),
    ConstantReply("/github/list-repos", {"repos": []}, group=EndpointGroup.ACCOUNT),
    ConstantReply(
        "/github/list-branches", {"branches": []}, group=EndpointGroup.ACCOUNT
    ),
    # remote and cloud agents
    ConstantReply("/remote-agents/list", _NO_REMOTE_AGENTS, group=EndpointGroup.AGENTS),
    ConstantReply(
        "/remote-agents/list-stream",
        _NO_REMOTE_AGENTS,
        stream=True,
        group=EndpointGroup.AGENTS,
    ),
    ConstantReply(
        "/remote-agents/agent-history-stream",
        None,
        stream=True,
        group=EndpointGroup.AGENTS,
    ),
    ConstantReply(
        "/remote-agents/get-chat-history",
        {"chat_history": []},
        group=EndpointGroup.AGENTS,
    ),
    ConstantReply(
        "/cloud-agents/agents/list",
        {"agents": [], "next_page_token": ""},
        group=EndpointGroup.AGENTS,
    ),
    ConstantReply(
        "/cloud-agents/agents/get-messages",
        {"messages": []},
        group=EndpointGroup.AGENTS,
    ),
    ConstantReply(
        "/cloud-agents/agents/batch-get-message-counts",
        {"message_counts": []},
        group=EndpointGroup.AGENTS,
    ),
)

# Writes of settings that live in the official service, by a part of their paths.
SETTINGS_WRITES = tuple(
    f"/settings/{verb}-" for verb in ("upsert", "create", "update", "set", "save")
)
# Families whose exact names were never recorded: (part or end of the path, answer).
CONTAINING: tuple[tuple[str, Json], ...] = (("/settings/", {"configs": []}),)
ENDING: tuple[tuple[str, Json], ...] = (
    ("/poll-update", {"updates": [], "events": []}),
    ("/stream", {"updates": [], "events": []}),  # the CLI's workspace channel
    ("/get-last-seq-id", {"last_seq_id": 0}),
)
