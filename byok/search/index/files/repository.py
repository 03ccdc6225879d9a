"""Finds the git repository of a folder by reading files, without running git."""

import os
from pathlib import Path
from typing import NamedTuple

from byok.search.index.files.reading import Folder, Unreadable

# What changes with each commit and each checkout; which of them there are depends on
# the format of the references.
_MOVES = ("HEAD", "logs/HEAD", "reftable/tables.list")


class Repository(NamedTuple):
    """A work tree: its top folder, its git folder, and the common git folder."""

    top: Path
    own: Path
    common: Path

    @property
    def moves(self) -> list[Path]:
        """Files of which at least one changes with every commit or checkout."""
        shared = self.common / _MOVES[-1]
        return [*(self.own / name for name in _MOVES), shared]


# What `stat` says of files that may not be there.
Marks = tuple[tuple[int, int, int] | None, ...]


def repository_of(root: Path) -> Repository | None:
    """Return the repository that contains a folder; its folders may not exist."""
    for top in (root, *root.parents):
        link = top / ".git"
        if os.path.lexists(link):
            own = link if link.is_dir() else _pointed_folder(link, "gitdir:") or link
            return Repository(top, own, _pointed_folder(own / "commondir") or own)
    return None


def is_other_work_tree(folder: str, root: Path) -> bool:
    """Tell whether a folder is one more work tree of the repository around `root`.

    Not where that repository is a bare one, which has nothing but such work trees.
    """
    if not os.path.lexists(f"{folder}/.git"):  # as nearly always: no Path is made
        return False
    found, around = repository_of(Path(folder)), repository_of(root)
    return (
        found is not None
        and around is not None
        and found.own != around.own
        and found.common == around.common.resolve()
        and (around.own / "index").is_file()
    )


def marks_of(repository: Repository | None) -> Marks:
    """Return file times that change with each commit; a few calls of `stat`."""
    return tuple(map(_mark, repository.moves)) if repository else ()


def load(path: Path) -> bytes | None:
    """Return a file that steers a walk, None if there is none to read."""
    try:
        with Folder(path.parent) as opened:
            return opened.load(path.name)
    except Unreadable:
        return None


def _pointed_folder(link: Path, before: str = "") -> Path | None:
    """Return the folder that a file of git names, relative to where the file is."""
    text = os.fsdecode((load(link) or b"").strip())
    path = text.removeprefix(before).strip()
    # Never one on another machine, as Windows would read it.
    if not path or not text.startswith(before) or path.startswith(("//", "\\\\")):
        return None
    try:
        return (link.parent / path).resolve()
    except (OSError, RuntimeError, ValueError):  # too long, a circle, a NUL
        return None


def _mark(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
