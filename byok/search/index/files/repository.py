"""Finds the git repository of a folder by reading files, without running git."""

import os
from pathlib import Path
from typing import NamedTuple

from byok.search.index.files.reading import Folder, Unreadable

# Files that change with each commit and checkout; which of them exist depends on the
# format of the references.
_CHANGING_FILES = ("HEAD", "logs/HEAD", "reftable/tables.list")
_MAX_BYTES = 2**20
# Time, size and inode of files; None for a file that does not exist.
Marks = tuple[tuple[int, int, int] | None, ...]


class Repository(NamedTuple):
    """A work tree: its top folder, its git folder, and that of all its work trees."""

    top: Path
    git_folder: Path
    common_folder: Path

    @property
    def changing_files(self) -> list[Path]:
        """Files of which at least one changes with every commit or checkout."""
        shared = self.common_folder / _CHANGING_FILES[-1]
        return [*(self.git_folder / name for name in _CHANGING_FILES), shared]


def repository_of(root: Path) -> Repository | None:
    """Return the repository that contains a folder; its folders may not exist."""
    for top in (root, *root.parents):
        link = top / ".git"
        if os.path.lexists(link):
            own = link if link.is_dir() else _linked_folder(link, "gitdir:") or link
            return Repository(top, own, _linked_folder(own / "commondir") or own)
    return None


def is_other_work_tree(folder: str, root: Path) -> bool:
    """Tell whether a folder is another work tree of the repository that has `root`.

    A bare repository has nothing but such work trees, so they do not count.
    """
    if not os.path.lexists(f"{folder}/.git"):  # the usual case needs no Path
        return False
    other, main = repository_of(Path(folder)), repository_of(root)
    return (
        other is not None
        and main is not None
        and other.git_folder != main.git_folder
        and other.common_folder == main.common_folder.resolve()
        and (main.git_folder / "index").is_file()
    )


def marks_of(repository: Repository | None) -> Marks:
    """Return marks that change with each commit; a few calls of `stat`."""
    return tuple(map(_mark, repository.changing_files)) if repository else ()


def load(folder: Path, path: str) -> bytes | None:
    """Return an ignore file or a file of git, or None if it is unreadable."""
    try:
        with Folder(folder) as opened:
            return opened.read(path, _MAX_BYTES)[0]
    except Unreadable:
        return None


def _linked_folder(link: Path, prefix: str = "") -> Path | None:
    """Return the folder that a file of git names, relative to that file."""
    text = os.fsdecode((load(link.parent, link.name) or b"").strip())
    path = text.removeprefix(prefix).strip()
    # Windows would take such a path for one on another machine.
    if not path or not text.startswith(prefix) or path.startswith(("//", "\\\\")):
        return None
    try:
        return (link.parent / path).resolve()
    except (OSError, RuntimeError, ValueError):  # too long, a circle, a NUL
        return None


def _mark(path: Path) -> tuple[int, int, int] | None:
    try:
        facts = path.stat()
    except (OSError, ValueError):
        return None
    return facts.st_mtime_ns, facts.st_size, facts.st_ino
