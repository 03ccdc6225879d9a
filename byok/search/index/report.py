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

_MAX_WALK_SECONDS = 4.0
# Files that were skipped when they were read, and files whose blob was. As one query
# with an outer join they take three times as long (200,000 files: 0.5 s).
_SKIPPED_QUERIES = (
    "SELECT path, reason FROM file WHERE workspace_id = ? AND reason IS NOT NULL "
    "ORDER BY path",
    "SELECT f.path, b.reason FROM blob b CROSS JOIN file f ON f.blob_id = b.id "
    "WHERE b.reason IS NOT NULL AND f.workspace_id = ? AND f.reason IS NULL "
    "ORDER BY f.path",
)
_MAX_ALIKE = 5


class SkippedFiles(NamedTuple):
    """The skipped paths of a workspace: their number by reason, and some of them.

    A skipped folder counts as one path, which ends in `/`. `whole` is False if the walk
    ran out of time.
    """

    counts: Mapping[SkipReason, int]
    files: list[Skipped]
    whole: bool


def explain_path(
    workspaces: Iterable[Workspace], store: Store, path: Path
) -> PathStatus:
    """Report whether a path is indexed, else why not.

    Where workspaces are nested, the report is that of the innermost one.

    Raises:
        BadRequest: no workspace contains the path.
    """
    containing = [space for space in workspaces if path.is_relative_to(space.root)]
    if not containing:
        raise BadRequest(
            "No workspace contains this path.",
            hint="`byok index status` lists them, `byok index add DIR` adds one.",
            code="no_workspace",
        )
    inner = max(containing, key=lambda space: len(space.root.parts))
    below = path.relative_to(inner.root).as_posix()
    facts = _stat_or_reason(inner.root / below)
    mode = facts.st_mode if isinstance(facts, os.stat_result) else 0
    rule = inner.rules.find_rule(below, is_dir=stat.S_ISDIR(mode))
    state, reason = _state_and_reason(inner, store, below, facts)
    return PathStatus(
        str(path),
        state,
        reason,
        rule.words or (reason.explanation if reason else ""),
        inner.rules.notes_on(below),
        exists=facts is not None,
        rule=rule.words,
        advice=rule.advice,
        cure=rule.cure,
        alike=_find_alike(inner, store, below) if state == "not there" else (),
    )


def _find_alike(workspace: Workspace, store: Store, path: str) -> tuple[str, ...]:
    """Return indexed files in deeper folders whose paths end with the given one."""
    end = f"/{path}"
    with store.reading() as db:
        rows = db.execute(
            "SELECT path FROM file WHERE workspace_id = ? AND reason IS NULL "
            "AND substr(path, ?) = ? ORDER BY length(path), path LIMIT ?",
            (workspace.id, -len(end), end, _MAX_ALIKE),
        ).fetchall()
    return tuple(str(workspace.root / row[0]) for row in rows)


def _state_and_reason(
    workspace: Workspace,
    store: Store,
    path: str,
    facts: os.stat_result | SkipReason | None,
) -> tuple[str, SkipReason | None]:
    mode = facts.st_mode if isinstance(facts, os.stat_result) else 0
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
    if not isinstance(facts, os.stat_result):
        return ("skipped" if facts else "not there"), facts
    if not stat.S_ISREG(mode):
        return "skipped", SkipReason.NOT_A_FILE
    if facts.st_size > MAX_BYTES:
        return "skipped", SkipReason.TOO_LARGE
    return "not indexed yet", None


def _stat_or_reason(path: Path) -> os.stat_result | SkipReason | None:
    """Return the facts of a path, why they cannot be read, or None if it is free."""
    try:
        return path.lstat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None  # ValueError: a character that no path can contain
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return None
        return SkipReason.NOT_ACCESSIBLE


def totals(store: Store) -> dict[str, Any]:
    """Count blobs, checkpoints and chunks, and the bytes of stored contents."""
    with store.reading() as db:
        stored, size = db.execute(
            "SELECT count(*), coalesce(sum(bytes), 0) FROM content"
        ).fetchone()
        blobs = db.execute("SELECT count(*) FROM blob WHERE state <> 3").fetchone()
        checkpoints = db.execute("SELECT count(*) FROM checkpoint").fetchone()
    return {
        "blobs": blobs[0],
        "blobs_held": stored,
        "bytes_held": size,
        "checkpoints": checkpoints[0],
        "chunks": store.index.chunks,
    }


def find_skipped(
    workspace: Workspace,
    store: Store,
    *,
    wanted: Callable[[Skipped], bool] = lambda file: True,
    offset: int = 0,
    limit: int = 100,
    seconds: float = _MAX_WALK_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> SkippedFiles:
    """Return the skipped paths of a workspace; blocks for up to `seconds`.

    `files` are `limit` of those for which `wanted` is true, after the first `offset`.
    Files that were read and have no text are rows of the database. Paths that rules
    leave out are only counted while the index is synchronised, so this list needs a
    walk of its own.
    """
    deadline = clock() + seconds
    whole = False

    def find_all() -> Iterator[Skipped]:
        nonlocal whole
        for query in _SKIPPED_QUERIES:
            with store.reading() as db:
                rows = db.execute(query, (workspace.id,)).fetchall()
            yield from (Skipped(path, SkipReason(reason)) for path, reason in rows)
        with suppress(Unreadable):  # the folder is gone, as the workspace's status says
            for batch in walk(workspace.root, workspace.rules, Counters()):
                if clock() > deadline:
                    return
                yield from (entry for entry in batch if isinstance(entry, Skipped))
            whole = True

    counts: Counter[SkipReason] = Counter()
    files: list[Skipped] = []
    matches = 0
    for skipped in find_all():
        counts[skipped.reason] += 1
        if wanted(skipped):
            if offset <= matches < offset + limit:
                files.append(skipped)
            matches += 1
    return SkippedFiles(counts, files, whole)


def find_skipped_by_path(
    workspaces: Iterable[Workspace],
    store: Store,
    fits: Callable[[str], bool],
    limit: int,
) -> list[tuple[Path, Skipped]]:
    """Return up to `limit` skipped paths that fit, each with its workspace's root.

    Blocks for some seconds at most, as `find_skipped` does.
    """
    deadline = time.monotonic() + _MAX_WALK_SECONDS
    matches: list[tuple[Path, Skipped]] = []
    for space in workspaces:
        skipped = find_skipped(
            space,
            store,
            wanted=lambda file: fits(file.path),
            limit=limit - len(matches),
            seconds=deadline - time.monotonic(),
        )
        matches += [(space.root, file) for file in skipped.files]
    return matches


def is_named_in(question: str) -> Callable[[str], bool]:
    """Return a predicate for paths: does the question name the path's last part?

    A name with a dot counts where it stands in the question. The words of a name count
    if they are several, or all words of the question: a single word such as "build" is
    also a skipped folder, and a subject that people ask about.
    """
    question_terms, lower = {*terms(question)}, question.lower()

    def is_named(path: str) -> bool:
        name = path.rstrip("/").rpartition("/")[2]
        words = {term for term in path_terms(name) if not term.startswith(COMPOUND)}
        in_words = words == question_terms or (
            len(words) > 1 and words < question_terms
        )
        return in_words or ("." in name and name.lower() in lower)

    return is_named
