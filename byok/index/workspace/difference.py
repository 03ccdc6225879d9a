"""Compares a workspace on disk with the index."""

import sys
from collections.abc import Collection, Iterable
from typing import NamedTuple

from byok.index.files.ignore import IGNORE_FILES
from byok.index.files.reading import Folder
from byok.index.files.scan import WHOLE, is_below, is_folder_at
from byok.index.store.store import Store
from byok.index.types import FileFacts, WorkspaceTask
from byok.index.workspace.watch import Watcher
from byok.index.workspace.workspace import Workspace


class Difference(NamedTuple):
    """Files to read, files that are gone, folders to look into."""

    changed: list[WorkspaceTask]
    gone: list[str]
    tops: frozenset[str] = frozenset()


class Disk:
    """A workspace on disk; calls block, and watch each folder they look into."""

    def __init__(self, workspace: Workspace, store: Store, watcher: Watcher) -> None:
        self._workspace = workspace
        self._store = store
        self._watcher = watcher

    def compare(self, tops: Collection[str], *, limit: int) -> Difference:
        """Walk some folders; raises the errors of `Workspace.compare`."""
        workspace = self._workspace
        entered: set[str] = set()

        def enter(path: str) -> None:
            entered.add(path)
            self._watcher.enter(path)

        for top in tops:
            workspace.rules.forget(top)
        if tops == WHOLE:
            for folder in workspace.read_steering().folders:
                enter(folder)
        known = self._indexed_files(tops)
        compared = workspace.compare(
            {path: facts for path, (facts, _) in known.items()},
            limit=limit,
            tops=tops,
            entering=enter,
        )
        self._watcher.keep(tops, entered)
        versions = {path: name for path, (_, name) in known.items()}
        return Difference(self._tasks(compared.changed, versions), compared.gone)

    def look_at(self, paths: Iterable[str]) -> Difference:
        """Sort paths into changed files, files that are gone, and folders to walk.

        Raises:
            Unreadable: the root is gone.
        """
        wanted = {path for changed in paths for path in _affected_paths(changed)}
        rules = self._workspace.rules
        with Folder(self._workspace.root) as folder:
            kinds = {path: is_folder_at(folder, path) for path in wanted - WHOLE}
        tops = {
            path
            for path, is_folder in kinds.items()
            if is_folder and rules.reason(path, is_dir=True) is None
        } | (wanted & WHOLE)
        tops = {top for top in tops if not top or not _is_inside(top, tops)}
        rest = {path: kind for path, kind in kinds.items() if not is_below(path, tops)}
        changed = [
            path
            for path, is_folder in rest.items()
            if is_folder is False and rules.reason(path) is None
        ]
        away = rest.keys() - set(changed)
        self._watcher.keep(away, ())
        versions = {
            path: name for path, (_, name) in self._indexed_files(changed).items()
        }
        return Difference(
            self._tasks(changed, versions),
            [*self._indexed_files(away)],
            frozenset(tops),
        )

    def _tasks(
        self, paths: Iterable[str], versions: dict[str, bytes]
    ) -> list[WorkspaceTask]:
        workspace = self._workspace
        root = str(workspace.root)
        return [
            WorkspaceTask(workspace.id, path, root, versions.get(path, b""))
            for path in paths
        ]

    def _indexed_files(
        self, tops: Collection[str]
    ) -> dict[str, tuple[FileFacts, bytes]]:
        """Return the files at and below some paths: facts, and names of versions."""
        ranges = [
            some
            for top in tops
            for some in ((top, f"{top}\0"), (f"{top}/", f"{top}0"))  # 0 follows /
        ]
        if "" in tops:
            ranges = [("", chr(sys.maxunicode))]
        with self._store.reading() as db:
            return {
                path: (FileFacts(*facts), name or b"")
                for first, end in ranges
                for path, name, *facts in db.execute(
                    "SELECT f.path, b.name, f.size, f.mtime_ns, f.ctime_ns, f.inode "
                    "FROM file f LEFT JOIN blob b ON b.id = f.blob_id "
                    "WHERE f.workspace_id = ? AND f.path >= ? AND f.path < ?",
                    (self._workspace.id, first, end),
                )
            }


def _affected_paths(path: str) -> tuple[str, ...]:
    """Return what to look at: the rules of a folder hold for all that is below."""
    folder, _, name = path.rpartition("/")
    return (path, folder) if name in IGNORE_FILES else (path,)


def _is_inside(path: str, tops: Collection[str]) -> bool:
    return is_below(path.rpartition("/")[0], tops)
