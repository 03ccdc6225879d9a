"""Commits of a file from before it was moved count for its present path.

Only moves that leave the content as it is are known: git finds them by comparing the
names of objects, without reading any, so also where contents were never fetched.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from byok.index.types import Commit

# A file with so many commits is described well enough.
_ENOUGH = 5
MOST_RENAMES = 50_000  # that are followed, of all commits together


class Rename(NamedTuple):
    """A file that a commit moved."""

    old: str
    new: str


class ReadCommit(NamedTuple):
    """A commit as git tells it, and what it moved."""

    commit: Commit
    renames: Sequence[Rename] = ()


def follow_renames(newest_first: Sequence[ReadCommit]) -> tuple[Commit, ...]:
    """Return the commits; present paths stand behind those that had another then.

    Files with five commits of their own get no more.
    """
    own = Counter(
        path for commit, _ in newest_first if commit.telling for path in commit.files
    )
    present: dict[str, str] = {}  # by the path at the time of the commit at hand
    followed = []
    for commit, renames in newest_first:
        if present and commit.telling:
            commit = _with_present_paths(commit, present, own)
        followed.append(commit)
        _go_back(present, renames)
    return tuple(followed)


def _with_present_paths(
    commit: Commit, present: dict[str, str], own: Counter[str]
) -> Commit:
    moved = (present[path] for path in commit.files if path in present)
    added = [path for path in moved if own[path] < _ENOUGH]
    if not added:
        return commit
    return commit._replace(files=tuple(dict.fromkeys((*commit.files, *added))))


def _go_back(present: dict[str, str], renames: Sequence[Rename]) -> None:
    """Make `present` right for the commits before one that moved files."""
    pairs = [(old, present.get(new, new)) for old, new in renames]
    for _, new in renames:
        present.pop(new, None)  # before, another file was there, or none
    present.update(pairs)
