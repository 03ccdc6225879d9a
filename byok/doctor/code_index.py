"""Checks of the code index: its files, each workspace, and watching for changes."""

import sys
from collections.abc import Sequence
from pathlib import Path

from byok.chat import Json
from byok.doctor.background import in_background
from byok.doctor.index_files import WorkspaceFiles, files_of, find_damage, workspaces_in
from byok.doctor.results import CheckResult, doubtful, good, skip, wrong
from byok.doctor.surroundings import Surroundings
from byok.errors import ConfigError
from byok.index.files.roots import OwnFolders, check_root
from byok.index.store.segments import check_folder
from byok.index.store.segments import find_damaged as find_damaged_file
from byok.index.types import Phase
from byok.platform.paths import Paths
from byok.routing import Service

INDEX_SECONDS = 40.0
_CHECK_SECONDS = 25.0  # of a large database, as much as can be looked at by then
_GLANCE_SECONDS = 5.0
_REBUILD = "byok index rebuild"
_WATCHES = "sys/fs/inotify/max_user_watches"
_WATCHES_KEY = "fs.inotify.max_user_watches"
_ENOUGH_WATCHES = 524_288
_MARGIN = 1.1  # other programs watch, too


async def check_index(around: Surroundings, about: str) -> CheckResult:
    """Check that the index opens, and that its files are whole."""
    del about
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
        return doubtful(str(note), "The check of watches says more; else byok restart")
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


async def check_watches(around: Surroundings, about: str) -> CheckResult:
    """Check that the system lets byok watch every folder that is indexed."""
    del about
    if sys.platform != "linux":
        return good("this system watches whole trees")
    roots = await workspaces(around)
    return await in_background(lambda: _check_watches(around, roots))


def _check_watches(around: Surroundings, roots: Sequence[str]) -> CheckResult:
    file = around.machine.proc / _WATCHES
    if not file.exists():
        return skip(f"{file} does not exist")
    most = int(file.read_text("ascii"))
    counts = (_files(around.paths, root) for root in roots)
    needed = sum(known.folders for known in counts if known)
    if needed * _MARGIN > most:
        return doubtful(
            f"{needed:,} folders are indexed, and the system allows {most:,} watches: "
            "changes are seen late",
            f"sudo sysctl {_WATCHES_KEY}={max(_ENOUGH_WATCHES, 2 * needed)}",
        )
    return good(f"{needed:,} folders of {most:,} watches")
