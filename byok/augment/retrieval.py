"""`/agents/codebase-retrieval` on the wire."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from byok.augment.blobs import BlobNames, blob_names, to_text
from byok.augment.body import first_text, flag, integer, strings
from byok.chat import Json
from byok.knowledge import DEFAULT_LENGTH, LONGEST

_NO_BLOBS = BlobNames()
_FOLDERS = "open_folders"


@dataclass(frozen=True, slots=True)
class RetrievalRequest:
    """What is asked: `length` in characters; `code` and `commits` say of what.

    `roots` are the workspaces to search, `folders` those that the client has open
    (byok's own fields).
    """

    query: str
    length: int = DEFAULT_LENGTH
    blobs: BlobNames = _NO_BLOBS
    code: bool = True
    commits: bool = False
    roots: Sequence[str] = ()
    folders: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The answer, and what the client should know of its blobs."""

    text: str
    unknown: Sequence[bytes] = ()
    checkpoint_found: bool = True
    seconds: float = 0.0


def decode_retrieval(body: Json) -> RetrievalRequest:
    """Read a request; `dialog` and `enable_conversation_retrieval` change nothing."""
    length = integer(body, "max_output_length", DEFAULT_LENGTH)
    return RetrievalRequest(
        first_text(body, "information_request", "query"),
        min(length, LONGEST) if length > 0 else DEFAULT_LENGTH,
        blob_names(body),
        code=not flag(body, "disable_codebase_retrieval"),
        commits=flag(body, "enable_commit_retrieval"),
        roots=wanted_roots(body),
        folders=tuple(strings(body, _FOLDERS)),
    )


def with_folders(body: Json, folders: Sequence[str]) -> Json:
    """Return a request that says which folders its client has open."""
    return {**body, _FOLDERS: [*folders]}


def wanted_roots(body: Json) -> list[str]:
    """Return the workspaces that byok's own command line and MCP server ask about."""
    return strings(body, "workspaces")


def encode_retrieval(found: Retrieval) -> dict[str, Any]:
    """Write the answer."""
    return {
        "formatted_retrieval": found.text,
        "codebase_retrieval_elapsed_ms": round(found.seconds * 1000),
        "unknown_blob_names": [to_text(name) for name in found.unknown],
        "checkpoint_not_found": not found.checkpoint_found,
    }
