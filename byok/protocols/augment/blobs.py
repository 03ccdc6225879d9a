"""Blobs on the wire: names, uploads and sets of blobs.

A blob name is 64 hexadecimal digits, `sha256(path ‖ content)`. If a client computes
another name, that name is stored as an alias.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from byok.core.chat import Json
from byok.core.code_query import (
    DEFAULT_LENGTH,
    MAX_LENGTH,
    BlobNames,
    Retrieval,
    RetrievalRequest,
    to_bytes,
    to_text,
)
from byok.core.errors import BadRequest
from byok.protocols.augment.body import (
    first_text,
    flag,
    integer,
    items,
    mapping,
    strings,
    text,
)

MAX_UPLOADED = 1000
MAX_ASKED = 2000
MAX_CHECKPOINTED = 250_000  # as many as the files of a workspace
_MAX_ATTACHED = 1000
_FOLDERS = "open_folders"


class SentBlob(Struct, frozen=True):
    """One uploaded version of a file; missing or unusable fields are empty.

    `given` is the client's name for it. Unusable uploads are stored, too: clients ask
    about unknown names again and again.
    """

    given: str
    name: bytes
    path: str
    content: bytes


def requested_names(body: Json) -> list[str]:
    """Return the names of `/find-missing`, from either field, without duplicates.

    Raises:
        BadRequest: 422, more than 2,000 names.
    """
    names = strings(body, "mem_object_names", "blob_names")
    _check_count(len(names), MAX_ASKED)
    return names


def missing_reply(unknown: Sequence[str], nonindexed: Sequence[str]) -> dict[str, Any]:
    """Write the reply of `/find-missing`, with the field names of all clients."""
    return {
        "unknown_memory_names": list(unknown),
        "unknown_blob_names": list(unknown),
        "nonindexed_blob_names": list(nonindexed),
    }


def decode_uploads(body: Json) -> list[SentBlob]:
    """Return the blobs of `/batch-upload`, one for each item of the list.

    Raises:
        BadRequest: 422, more than 1,000 blobs.
    """
    blobs = items(body, "blobs")
    _check_count(len(blobs), MAX_UPLOADED)
    sent = []
    for item in blobs:
        blob = item if isinstance(item, dict) else {}
        given, content = text(blob, "blob_name", "name"), blob.get("content")
        name = to_bytes(given) if given else b""
        raw = content.encode("utf-8", "replace") if isinstance(content, str) else b""
        sent.append(SentBlob(given, name, text(blob, "path", "relative_path"), raw))
    return sent


def upload_reply(sent: Sequence[SentBlob], names: Sequence[str]) -> dict[str, Any]:
    """Acknowledge the blobs in their order, each by the client's name if it has one."""
    return {
        "blob_names": [
            blob.given or name for blob, name in zip(sent, names, strict=True)
        ]
    }


def blob_names(body: Json) -> BlobNames:
    """Return the set of blobs that the `blobs` object of a request describes."""
    if not (blobs := mapping(body, "blobs")):
        return BlobNames()
    return BlobNames(
        text(blobs, "checkpoint_id"),
        tuple(map(to_bytes, strings(blobs, "added_blobs"))),
        tuple(map(to_bytes, strings(blobs, "deleted_blobs"))),
    )


def checkpoint_names(body: Json) -> BlobNames:
    """Return the names of `/checkpoint-blobs`.

    Raises:
        BadRequest: 422, more than 250,000 names.
    """
    names = blob_names(body)
    _check_count(len(names.added) + len(names.deleted), MAX_CHECKPOINTED)
    return names


def attached_names(body: Json) -> tuple[bytes, ...]:
    """Return up to 1,000 blobs that the user attached to a question."""
    names = strings(body, "user_guided_blobs", "user_specified_files")
    return tuple(map(to_bytes, filter(None, names[:_MAX_ATTACHED])))


def checkpoint_reply(checkpoint: str | None) -> dict[str, Any]:
    """Write the id of a checkpoint.

    Raises:
        BadRequest: 404, the base checkpoint is unknown. A checkpoint without it would
            silently lose files.
    """
    if checkpoint is None:
        raise BadRequest(
            "The base checkpoint is unknown.",
            code="checkpoint_not_found",
            hint="Send all names again, with checkpoint_id null.",
            status=404,
        )
    return {"new_checkpoint_id": checkpoint}


def _check_count(count: int, limit: int) -> None:
    if count > limit:
        raise BadRequest(
            f"At most {limit:,} names are allowed in a request.",
            code="too_many_names",
            status=422,
        )


def decode_retrieval(body: Json) -> RetrievalRequest:
    """Decode a body of `/agents/codebase-retrieval`; its `dialog` is ignored."""
    length = integer(body, "max_output_length", DEFAULT_LENGTH)
    return RetrievalRequest(
        first_text(body, "information_request", "query"),
        min(length, MAX_LENGTH) if length > 0 else DEFAULT_LENGTH,
        blob_names(body),
        code=not flag(body, "disable_codebase_retrieval"),
        commits=flag(body, "enable_commit_retrieval"),
        conversations=flag(body, "enable_conversation_retrieval"),
        symbol=first_text(body, "symbol"),
        roots=requested_roots(body),
        folders=tuple(strings(body, _FOLDERS)),
        conversation=first_text(body, "conversation_id"),
    )


def with_folders(body: Json, folders: Sequence[str]) -> Json:
    """Return a body of `/agents/codebase-retrieval` with the client's open folders."""
    return {**body, _FOLDERS: [*folders]}


def requested_roots(body: Json) -> list[str]:
    """Return the workspaces in a request of byok's command line or MCP server."""
    return strings(body, "workspaces")


def encode_retrieval(result: Retrieval) -> dict[str, Any]:
    """Write the reply of `/agents/codebase-retrieval`."""
    return {
        "formatted_retrieval": result.text,
        "codebase_retrieval_elapsed_ms": round(result.seconds * 1000),
        "unknown_blob_names": [to_text(name) for name in result.unknown],
        "checkpoint_not_found": not result.checkpoint_found,
    }
