"""Reports on the index: why a path is skipped, and how much is stored."""

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from byok.errors import BadRequest
from byok.index.store.store import Store
from byok.index.types import SkipReason
from byok.index.versions import MAX_BYTES
from byok.index.workspace.workspace import Workspace


class PathReport(NamedTuple):
    """The state of a path in words, and why it is skipped if it is.

    `notes` are sentences about what does not count of the ignore files above it.
    """

    what: str
    reason: SkipReason | None = None
    notes: tuple[str, ...] = ()


def why(workspaces: Iterable[Workspace], store: Store, path: Path) -> PathReport:
    """Report on a path; if workspaces are nested, the innermost one answers.

    Raises:
        BadRequest: no workspace contains it.
    """
    around = [space for space in workspaces if path.is_relative_to(space.root)]
    if not around:
        raise BadRequest(
            "No workspace contains this path.",
            hint="`byok index status` lists them, `byok index add DIR` adds one.",
            code="no_workspace",
        )
    inner = max(around, key=lambda space: len(space.root.parts))
    below = path.relative_to(inner.root).as_posix()
    what, reason = _why(inner, store, below)
    return PathReport(what, reason, tuple(inner.rules.notes_on(below)))


def _why(
    workspace: Workspace, store: Store, path: str
) -> tuple[str, SkipReason | None]:
    found = _look(workspace.root / path)
    mode = found.st_mode if isinstance(found, os.stat_result) else 0
    if reason := workspace.rules.reason(path, is_dir=stat.S_ISDIR(mode)):
        return "skipped", reason
    if stat.S_ISLNK(mode):
        return "skipped", SkipReason.LINK
    if stat.S_ISDIR(mode):
        return "a folder that is looked into", None
    with store.reading() as db:
        row = db.execute(
            "SELECT coalesce(b.reason, f.reason) FROM file f "
            "LEFT JOIN blob b ON b.id = f.blob_id "
            "WHERE f.workspace_id = ? AND f.path = ?",
            (workspace.id, path),
        ).fetchone()
    if row and row[0]:
        return "skipped", SkipReason(row[0])
    if row:
        return "indexed", None
    if not isinstance(found, os.stat_result):
        return ("skipped" if found else "not there"), found
    if not stat.S_ISREG(mode):
        return "skipped", SkipReason.NOT_A_FILE
    if found.st_size > MAX_BYTES:
        return "skipped", SkipReason.TOO_LARGE
    return "not indexed yet", None


def _look(place: Path) -> os.stat_result | SkipReason | None:
    """Return what is at a path: its facts, why they cannot be had, None if nothing."""
    try:
        return place.lstat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None  # a ValueError is for what no path can hold
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return None
        return SkipReason.NOT_ACCESSIBLE


def totals(store: Store) -> dict[str, Any]:
    """Count blobs, checkpoints and chunks, and the bytes of held contents."""
    with store.reading() as db:
        held, size = db.execute(
            "SELECT count(*), coalesce(sum(bytes), 0) FROM content"
        ).fetchone()
        known = db.execute("SELECT count(*) FROM blob WHERE state <> 3").fetchone()
        checkpoints = db.execute("SELECT count(*) FROM checkpoint").fetchone()
    return {
        "blobs": known[0],
        "blobs_held": held,
        "bytes_held": size,
        "checkpoints": checkpoints[0],
        "chunks": store.index.chunks,
    }
