"""Reports on the index: why a path is skipped, and how much is stored."""

import errno
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from byok.core.code_query import PathStatus
from byok.core.errors import BadRequest
from byok.search.index.files.reading import Unreadable
from byok.search.index.files.scan import Counters, walk
from byok.search.index.parse.tokens import COMPOUND, path_terms, terms
from byok.search.index.store.store import Store
from byok.search.index.types import MAX_BYTES, Skipped, SkipReason
from byok.search.index.workspace.workspace import Workspace

_MOST_ALIKE = 5


def why(workspaces: Iterable[Workspace], store: Store, path: Path) -> PathStatus:
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
    found = _look(inner.root / below)
    mode = found.st_mode if isinstance(found, os.stat_result) else 0
    rule = inner.rules.find_rule(below, is_dir=stat.S_ISDIR(mode))
    what, reason = _why(inner, store, below, found)
    return PathStatus(
        str(path),
        what,
        reason,
        rule.words or (reason.explanation if reason else ""),
        inner.rules.notes_on(below),
        exists=found is not None,
        rule=rule.words,
        advice=rule.advice,
        cure=rule.cure,
        alike=_alike(inner, store, below) if what == "not there" else (),
    )


def _alike(workspace: Workspace, store: Store, path: str) -> tuple[str, ...]:
    end = f"/{path}"
    with store.reading() as db:
        rows = db.execute(
            "SELECT path FROM file WHERE workspace_id = ? AND reason IS NULL "
            "AND substr(path, ?) = ? ORDER BY length(path), path LIMIT ?",
            (workspace.id, -len(end), end, _MOST_ALIKE),
        ).fetchall()
    return tuple(str(workspace.root / row[0]) for row in rows)


def _why(
    workspace: Workspace,
    store: Store,
    path: str,
    found: os.stat_result | SkipReason | None,
) -> tuple[str, SkipReason | None]:
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


# Which files of a workspace are not searchable, and why: a walk made for the question.
#
# What a rule or its kind leaves out is only counted by the walks that keep the index in
# step, so a list needs a walk of its own. What was read and is no text stands in the
# database.


_SECONDS = 4.0
# Files, and those that were found to be a version that is known. As one query with an
# outer join they take three times as long (200,000 files: 0.5 s).
_STORED = (
    "SELECT path, reason FROM file WHERE workspace_id = ? AND reason IS NOT NULL "
    "ORDER BY path",
    "SELECT f.path, b.reason FROM blob b CROSS JOIN file f ON f.blob_id = b.id "
    "WHERE b.reason IS NOT NULL AND f.workspace_id = ? AND f.reason IS NULL "
    "ORDER BY f.path",
)


class SkippedFiles(NamedTuple):
    """How many there are for each reason, and some of them.

    A folder that is left out counts as one, and its path ends in `/`. `whole` is False
    where the walk did not come to its end.
    """

    counts: Mapping[SkipReason, int]
    files: list[Skipped]
    whole: bool


def find_skipped(
    workspace: Workspace,
    store: Store,
    *,
    wanted: Callable[[Skipped], bool] = lambda file: True,
    offset: int = 0,
    limit: int = 100,
    seconds: float = _SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> SkippedFiles:
    """Return what is left out; blocks for up to `seconds`.

    `files` are `limit` of those that are `wanted`, after the first `offset`.
    """
    until = clock() + seconds
    whole = False

    def steps() -> Iterator[Skipped]:
        """Give what is left out: the rows of the database, then what a walk finds."""
        nonlocal whole
        for query in _STORED:
            with store.reading() as db:
                rows = db.execute(query, (workspace.id,)).fetchall()
            yield from (Skipped(path, SkipReason(why)) for path, why in rows)
        with suppress(Unreadable):  # the folder is gone, as the workspace's status says
            for batch in walk(workspace.root, workspace.rules, Counters()):
                if clock() > until:
                    return
                yield from (entry for entry in batch if isinstance(entry, Skipped))
            whole = True

    counts: Counter[SkipReason] = Counter()
    files: list[Skipped] = []
    place = 0
    for found in steps():
        counts[found.reason] += 1
        if wanted(found):
            if offset <= place < offset + limit:
                files.append(found)
            place += 1
    return SkippedFiles(counts, files, whole)


def find_skipped_by_path(
    workspaces: Iterable[Workspace],
    store: Store,
    fits: Callable[[str], bool],
    limit: int,
) -> list[tuple[Path, Skipped]]:
    """Return up to `limit` files that are left out and whose path fits, with the root.

    It blocks for up to some seconds, as `find_skipped` does.
    """
    until = time.monotonic() + _SECONDS
    found: list[tuple[Path, Skipped]] = []
    for space in workspaces:
        skipped = find_skipped(
            space,
            store,
            wanted=lambda file: fits(file.path),
            limit=limit - len(found),
            seconds=until - time.monotonic(),
        )
        found += [(space.root, file) for file in skipped.files]
    return found


def is_named_in(question: str) -> Callable[[str], bool]:
    """Return what tells whether a question names a path's last part.

    It may do so in words, if they are several or all that it has: "build" is a folder
    that is left out, and what people ask about.
    """
    asked, lower = {*terms(question)}, question.lower()

    def fits(path: str) -> bool:
        name = path.rstrip("/").rpartition("/")[2]
        parts = {term for term in path_terms(name) if not term.startswith(COMPOUND)}
        is_said = parts == asked or (len(parts) > 1 and parts < asked)
        return is_said or ("." in name and name.lower() in lower)

    return fits
