"""The body and the reply of `/agents/codebase-retrieval`."""

from collections.abc import Sequence
from typing import Any

from byok.core.chat import Json
from byok.core.code_query import (
    DEFAULT_LENGTH,
    LONGEST,
    Retrieval,
    RetrievalRequest,
    to_text,
)
from byok.protocols.augment.blobs import blob_names
from byok.protocols.augment.body import first_text, flag, integer, strings

_FOLDERS = "open_folders"


def decode_retrieval(body: Json) -> RetrievalRequest:
    """Decode a request; `dialog` and `enable_conversation_retrieval` are ignored."""
    length = integer(body, "max_output_length", DEFAULT_LENGTH)
    return RetrievalRequest(
        first_text(body, "information_request", "query"),
        min(length, LONGEST) if length > 0 else DEFAULT_LENGTH,
        blob_names(body),
        code=not flag(body, "disable_codebase_retrieval"),
        commits=flag(body, "enable_commit_retrieval"),
        symbol=first_text(body, "symbol"),
        roots=requested_roots(body),
        folders=tuple(strings(body, _FOLDERS)),
    )


def with_folders(body: Json, folders: Sequence[str]) -> Json:
    """Return a request that names the open folders of its client."""
    return {**body, _FOLDERS: [*folders]}


def requested_roots(body: Json) -> list[str]:
    """Return the workspaces that byok's own command line and MCP server ask about."""
    return strings(body, "workspaces")


def encode_retrieval(found: Retrieval) -> dict[str, Any]:
    """Write the reply."""
    return {
        "formatted_retrieval": found.text,
        "codebase_retrieval_elapsed_ms": round(found.seconds * 1000),
        "unknown_blob_names": [to_text(name) for name in found.unknown],
        "checkpoint_not_found": not found.checkpoint_found,
    }
