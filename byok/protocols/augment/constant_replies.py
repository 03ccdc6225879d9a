"""Endpoints with a fixed reply, so that clients neither retry nor report errors."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from byok.core.chat import Json
from byok.core.routing import EndpointGroup


class ConstantReply(Struct, frozen=True):
    """An endpoint with a fixed reply: the lines of a stream, or one object."""

    path: str
    lines: tuple[Json, ...]
    group: EndpointGroup | None = None
    stream: bool = False


_EMPTY: dict[str, Any] = {}
_NO_REMOTE_AGENTS = {
    "remote_agents": [],
    "max_remote_agents": 0,
    "max_active_remote_agents": 0,
}
# Endpoints whose requests are accepted and dropped.
_IGNORED: Mapping[EndpointGroup, tuple[str, ...]] = {
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

# Replies with content. If sources differ on the name of a field, both names are sent.
_FIXED: Mapping[EndpointGroup, Mapping[str, Json]] = {
    EndpointGroup.AGENTS: {
        # byok cannot judge a call: "not safe" makes the client ask its user.
        "/agents/check-tool-safety": {"is_safe": False},
        "/agents/list-remote-tools": {"tools": []},
        "/agents/run-remote-tool": {
            "tool_output": "",
            "tool_result_message": "byok serves no remote tools.",
            "is_error": True,
            "status": 0,
        },
        "/settings/get-tenant-tool-permissions": {
            "tool_permissions_settings": {"rules": []}
        },
        "/remote-agents/list": _NO_REMOTE_AGENTS,
        "/remote-agents/get-chat-history": {"chat_history": []},
        "/cloud-agents/agents/list": {"agents": [], "next_page_token": ""},
        "/cloud-agents/agents/get-messages": {"messages": []},
        "/cloud-agents/agents/batch-get-message-counts": {"message_counts": []},
    },
    EndpointGroup.CONTEXT: {
        "/agents/blob-status": {
            "unknown_blob_names": [],
            "nonindexed_blob_names": [],
            "checkpoint_not_found": False,
        },
        "/indexed-commits/get-latest-blobset": {"blobset": None, "commit": None},
    },
    EndpointGroup.CHAT: {
        "/chat/exchanges/list": {"chat_history": []},
        "/context-canvas/list": {"canvases": [], "next_page_token": ""},
        "/get-implicit-external-sources": {"external_source_ids": [], "sources": []},
        "/search-external-sources": {"sources": [], "results": []},
    },
    EndpointGroup.ACCOUNT: {
        "/user-secrets/list": {"secrets": []},
        "/user-secrets/get": {"secret": None, "found": False},
        "/get-credit-info": {
            "usage_units_remaining": 1_000_000,
            "is_credit_balance_low": False,
            "display_info": {"usage_unit_display_name": "credits"},
        },
        "/subscription-info": {
            "subscription": {
                "ActiveSubscription": {
                    "end_date": None,
                    "usage_balance_depleted": False,
                }
            },
            "feature_gating_info": {"feature_controls": []},
        },
        "/subscription-banner": {"banner": None},
        "/notifications/read": {"notifications": []},
        "/github/is-user-configured": {"is_configured": False},
        "/github/list-repos": {"repos": []},
        "/github/list-branches": {"branches": []},
    },
}

QUIET: tuple[ConstantReply, ...] = (
    *(
        ConstantReply(path, (_EMPTY,), group)
        for group, paths in _IGNORED.items()
        for path in paths
    ),
    *(
        ConstantReply(path, (body,), group)
        for group, replies in _FIXED.items()
        for path, body in replies.items()
    ),
    ConstantReply(
        "/token",
        (
            {
                "access_token": "",
                "token_type": "Bearer",
                "expires_in": 31_536_000,
                "scope": "email profile offline_access",
            },
        ),
    ),
    ConstantReply(
        "/remote-agents/list-stream",
        (_NO_REMOTE_AGENTS,),
        EndpointGroup.AGENTS,
        stream=True,
    ),
    ConstantReply(
        "/remote-agents/agent-history-stream", (), EndpointGroup.AGENTS, stream=True
    ),
)

# Parts of paths that write settings in the official service.
SETTINGS_WRITES = tuple(
    f"/settings/{verb}-" for verb in ("upsert", "create", "update", "set", "save")
)
# Endpoints whose exact paths were never recorded: (part or end of the path, reply).
CONTAINING: tuple[tuple[str, Json], ...] = (("/settings/", {"configs": []}),)
ENDING: tuple[tuple[str, Json], ...] = (
    ("/poll-update", {"updates": [], "events": []}),
    ("/stream", {"updates": [], "events": []}),  # the CLI's workspace channel
    ("/get-last-seq-id", {"last_seq_id": 0}),
)
