"""Which endpoints go to the official service together.

A path without a group is answered by byok whatever the user chose: its own ones, those
of OpenAI clients, unknown ones, and /token, whose answer would hand the token of the
service to the client.
"""

from byok.routing import EndpointGroup

_CONTEXT = """
    /find-missing /batch-upload /checkpoint-blobs /memorize
    /agents/codebase-retrieval /agents/codebase-retrieval-raw /agents/blob-status
    /indexed-commits/get-latest-blobset /indexed-commits/register-blobset
"""
_EDIT = """
    /edit /instruction-stream /smart-paste-stream /agents/edit-file
    /next-edit-stream /next_edit_loc /generate-commit-message-stream
"""
_CHAT = """
    /chat /chat-stream /prompt-enhancer /generate-conversation-title
    /save-chat /chat/exchanges/list /context-canvas/list
    /get-implicit-external-sources /search-external-sources
"""
_AGENTS = """
    /agents/check-tool-safety /agents/list-remote-tools /agents/run-remote-tool
    /agents/revoke-tool-access /settings/get-tenant-tool-permissions
    /remote-agents/list /remote-agents/list-stream /remote-agents/create
    /remote-agents/agent-history-stream /remote-agents/get-chat-history
    /remote-agents/update /remote-agents/delete /remote-agents/chat
    /remote-agents/logs /remote-agents/interrupt /remote-agents/pause
    /remote-agents/resume /remote-agents/resume-hint
    /remote-agents/generate-summary /remote-agents/add-ssh-key
    /cloud-agents/agents/list /cloud-agents/agents/create
    /cloud-agents/agents/get-messages /cloud-agents/agents/batch-get-message-counts
    /cloud-agents/agents/send-message /cloud-agents/agents/rename
    /cloud-agents/agents/delete /cloud-agents/agents/update-session-config
    /cloud-agents/agents/update-tags /cloud-experts/experts/create-agent
"""
_ACCOUNT = """
    /get-credit-info /get-billing-summary /subscription-info /subscription-banner
    /notifications/read /notifications/mark-as-read /notifications/mark-read
    /user-secrets/list /user-secrets/get /user-secrets/upsert /user-secrets/delete
    /github/is-user-configured /github/list-repos /github/list-branches
    /github/get-repo
"""
_TELEMETRY = """
    /record-session-events /record-user-events /record-request-events
    /record-preference-sample /client-metrics /client-completion-timelines
    /report-feature-vector /report-error
    /chat-feedback /completion-feedback /next-edit-feedback
    /resolve-completions /resolve-chat-input-completion /resolve-edit
    /resolve-instruction /resolve-smart-paste /resolve-next-edit
"""
PATHS: dict[EndpointGroup, tuple[str, ...]] = {
    EndpointGroup.MODELS: ("/get-models",),
    EndpointGroup.CONTEXT: tuple(_CONTEXT.split()),
    EndpointGroup.COMPLETION: ("/completion", "/chat-input-completion"),
    EndpointGroup.EDIT: tuple(_EDIT.split()),
    EndpointGroup.CHAT: tuple(_CHAT.split()),
    EndpointGroup.AGENTS: tuple(_AGENTS.split()),
    EndpointGroup.ACCOUNT: tuple(_ACCOUNT.split()),
    EndpointGroup.TELEMETRY: tuple(_TELEMETRY.split()),
}
_GROUPS = {path: group for group, paths in PATHS.items() for path in paths}


def group_of(path: str) -> EndpointGroup | None:
    """Return the group of an endpoint, None for one that byok answers in any case."""
    return _GROUPS.get(path)
