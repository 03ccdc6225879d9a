"""What a client uploads, as it sends it."""

import hashlib
from collections.abc import Mapping
from typing import Any

from tests.fakes.daemon import Editor

MISSING = "0" * 64


def blob(path: str, content: str) -> dict[str, str]:
    """Return a file version under its right name."""
    name = hashlib.sha256(path.encode() + content.encode()).hexdigest()
    return {"blob_name": name, "path": path, "content": content}


async def upload(editor: Editor, *blobs: Any) -> list[str]:
    """Upload file versions; returns the names that the daemon gives back."""
    reply = await editor.post("/batch-upload", {"blobs": list(blobs)})
    assert reply.status == 200
    names: list[str] = reply.json["blob_names"]
    return names


async def indexed(editor: Editor, *blobs: Mapping[str, str]) -> list[str]:
    """Upload file versions, and ask as clients do until they can be found."""
    names = await upload(editor, *blobs)
    await until_indexed(editor, names)
    return names


async def until_indexed(editor: Editor, names: list[str]) -> None:
    """Ask as clients do until uploaded file versions can be found."""
    while True:
        reply = await editor.post("/find-missing", {"mem_object_names": names})
        assert reply.json["unknown_memory_names"] == []
        if not reply.json["nonindexed_blob_names"]:
            return
