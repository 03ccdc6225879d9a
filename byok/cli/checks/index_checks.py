"""Checks of the code index: its files, and each workspace; nothing is changed."""

import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from byok.cli.checks.base import (
    CheckResult,
    Surroundings,
    doubtful,
    good,
    in_background,
    wrong,
)
from byok.core.chat import Json
from byok.core.errors import ConfigError
from byok.core.platform.paths import Paths
from byok.core.routing import Service
from byok.search.index.files.roots import OwnFolders, check_root
from byok.search.index.store.tantivy_index import check_folder
from byok.search.index.store.tantivy_index import find_damaged as find_damaged_file
from byok.search.index.types import Phase
from byok.storage.database import open_unchanged

INDEX_SECONDS = 40.0
_CHECK_SECONDS = 25.0  # of a large database, as much as can be looked at by then
_GLANCE_SECONDS = 5.0
_REBUILD = "byok index rebuild"
_RESTART = "byok restart"
if sys.platform == "linux":
    _RESTART += (
        "; if the system allows too few watches: "
        "sudo sysctl fs.inotify.max_user_watches=524288"
    )
_STEPS = 100_000  # of SQLite's machine, between two looks at the clock
_ROWS = 1_000_000  # of files, at most


class WorkspaceFiles(NamedTuple):
    """What the database knows of a workspace: files, and skipped ones by reason."""

    files: int
    skipped: dict[str, int]


async def check_index(around: Surroundings) -> CheckResult:
    """Check that the index opens, and that its files are whole."""
    paths = around.paths
    status = await around.ask_if_running(Service.INDEX_STATUS)
    if status and status.get("error"):
        return wrong(str(status["error"]), f"If it stays so: {_REBUILD}")
    if not paths.database.exists():
        return good("nothing is indexed yet (byok index add DIR)")
    damage = await in_background(lambda: find_damage(paths.database, _CHECK_SECONDS))
    if damage:
        return wrong(
            f"the database {paths.database} is damaged: {damage}", _move(paths)
        )
    if status is None and (trouble := await in_background(lambda: _trouble(paths))):
        return trouble
    if status is None:
        return good(f"{paths.database} is whole")
    chunks = (status.get("totals") or {}).get("chunks", 0)
    return good(f"{status.get('state')}, {chunks:,} chunks; its database is whole")


def _move(paths: Paths) -> str:
    name = paths.database.name
    return (
        f"byok stop; move {name} and {name}-wal away; byok serve; byok index add DIR "
        "for each folder"
    )


def _trouble(paths: Paths) -> CheckResult | None:
    """Look at the files of the lexical index, which a running daemon would change."""
    try:
        check_folder(paths.index)
    except ConfigError as error:
        return wrong(str(error), error.hint)
    if paths.index.is_dir() and (name := find_damaged_file(paths.index)):
        said = f"{paths.index / name} is damaged"
        return doubtful(said, "byok serve: it sets it aside and fills it again")
    return None


async def workspaces(around: Surroundings) -> Sequence[str]:
    """Return the folders that are indexed, those of the daemon if one runs."""
    if status := await around.ask_if_running(Service.INDEX_STATUS):
        return [str(space["root"]) for space in status.get("workspaces", ())]
    declared = (await around.settings()).context.workspaces
    return await in_background(lambda: _list_roots(around.paths, declared))


def _list_roots(paths: Paths, in_settings: Sequence[str]) -> list[str]:
    """Return the folders of the settings and those that were added by a command."""
    roots = [str(Path(root).expanduser()) for root in in_settings]
    if paths.database.exists() and not find_damage(paths.database, _GLANCE_SECONDS):
        roots += workspaces_in(paths.database)
    return [*dict.fromkeys(roots)]


async def check_workspace(around: Surroundings, root: str) -> CheckResult:
    """Check that a folder is indexed as a whole, and say what was skipped of it."""
    status = await around.ask_if_running(Service.INDEX_STATUS) or {}
    row: Json = next((w for w in status.get("workspaces", ()) if w["root"] == root), {})
    if failure := await in_background(lambda: _root_failure(around.paths, root)):
        return failure
    if row.get("phase") == Phase.TOO_LARGE:
        return doubtful(
            str(row.get("note")), "Raise context.max_files, or ignore folders in it"
        )
    if note := row.get("note"):
        return doubtful(str(note), _RESTART)
    known = await in_background(lambda: _files(around.paths, root))
    if known is None or not (known.files or known.skipped):
        return doubtful(
            "nothing of it is indexed yet", "byok serve, then wait a little"
        )
    said = _counts(known)
    if row and row.get("phase") != Phase.COMPLETE:
        said += f"; being indexed, {row.get('percentage', 0):.0f} %"
    return good(said)


def _root_failure(paths: Paths, root: str) -> CheckResult | None:
    try:
        check_root(Path(root), OwnFolders(paths.folders))
    except ConfigError as error:
        cure = f"byok index remove '{root}', or take it out of context.workspaces"
        return doubtful(str(error), error.hint or cure)
    return None


def _files(paths: Paths, root: str) -> WorkspaceFiles | None:
    if not paths.database.exists():
        return None
    return files_of(paths.database, root)


def _counts(known: WorkspaceFiles) -> str:
    said = f"{known.files:,} files indexed"
    if not known.skipped:
        return said
    reasons = ", ".join(
        f"{count:,} {why}" for why, count in sorted(known.skipped.items())
    )
    return f"{said}, skipped: {reasons}"


def find_damage(file: Path, seconds: float) -> str:
    """Return what is wrong with a database, "" if nothing was found in time."""
    deadline = time.monotonic() + seconds
    try:
        with closing(open_unchanged(file)) as db:
            db.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
            row = db.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        return "" if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT else str(error)
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if row == ("ok",) else str(row[0]).partition("\n")[0]


def workspaces_in(file: Path) -> list[str]:
    """Return the folders that were declared with `byok index add`."""
    with closing(open_unchanged(file)) as db:
        rows = db.execute("SELECT root FROM workspace WHERE kept ORDER BY id")
        return [root for (root,) in rows]


def files_of(file: Path, root: str) -> WorkspaceFiles:
    """Count what the database knows of a workspace."""
    skipped: dict[str, int] = {}
    count = 0
    sql = (
        "SELECT coalesce(b.reason, f.reason) FROM file f "
        "JOIN workspace w ON w.id = f.workspace_id "
        "LEFT JOIN blob b ON b.id = f.blob_id WHERE w.root = ? LIMIT ?"
    )
    with closing(open_unchanged(file)) as db:
        for (reason,) in db.execute(sql, (root, _ROWS)):
            if reason:
                skipped[reason] = skipped.get(reason, 0) + 1
            else:
                count += 1
    return WorkspaceFiles(count, skipped)
