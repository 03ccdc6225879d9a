"""Answers of the context endpoints while byok keeps no index of its own.

Clients stay calm when nothing is unknown and every upload is acknowledged by
position: they then neither upload again nor show "indexing" for ever.
"""

import hashlib
from typing import Any

from byok.augment.body import items, mapping, strings, text
from byok.chat import Json
from byok.errors import BadRequest

MAX_UPLOADED = 1000
MAX_ASKED = 2000


def find_missing(body: Json) -> dict[str, Any]:
    """Say that every blob is known: `mem_object_names` and `blob_names` alike.

    Raises:
        BadRequest: 422, more than 2,000 names.
    """
    _check_count(len(strings(body, "mem_object_names", "blob_names")), MAX_ASKED)
    return {
        "unknown_memory_names": [],
        "unknown_blob_names": [],
        "nonindexed_blob_names": [],
    }


def batch_upload(body: Json) -> dict[str, Any]:
    """Acknowledge each blob at its position, by the client's own name.

    Raises:
        BadRequest: 422, more than 1,000 blobs.
    """
    _check_count(len(items(body, "blobs")), MAX_UPLOADED)
    blobs = (b if isinstance(b, dict) else {} for b in items(body, "blobs"))
    return {"blob_names": [text(b, "blob_name", "name") for b in blobs]}


def checkpoint_blobs(body: Json) -> dict[str, Any]:
    """Give an id for the set of names: equal sets of changes get equal ids."""
    blobs = mapping(body, "blobs")
    digest = hashlib.sha256(text(blobs, "checkpoint_id").encode(errors="replace"))
    for sign, field in (("+", "added_blobs"), ("-", "deleted_blobs")):
        for name in sorted(strings(blobs, field)):
            digest.update(f"{sign}{name}\n".encode(errors="replace"))
    return {"new_checkpoint_id": f"byok-{digest.hexdigest()[:32]}"}


def _check_count(count: int, limit: int) -> None:
    if count > limit:
        raise BadRequest(
            f"At most {limit:,} names at once.", code="too_many_names", status=422
        )


def codebase_retrieval(body: Json) -> dict[str, Any]:
    """Say in one sentence that there is no index to search."""
    del body
    return {
        "formatted_retrieval": (
            "byok has no code index set up yet, so nothing was retrieved; "
            "use the file and search tools instead."
        ),
        "unknown_blob_names": [],
        "checkpoint_not_found": False,
    }
