"""Files that control indexing: ignore files and git's own, watched but not indexed."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from byok.index.files.git_rules import places_outside
from byok.index.files.ignore import IGNORE_FILES
from byok.index.files.repository import repository_of


class Steering(NamedTuple):
    """Paths below the root, or absolute ones.

    `rules` may change what is indexed, `commits` say that git has something new.
    """

    rules: frozenset[str] = frozenset()
    commits: frozenset[str] = frozenset()

    @property
    def folders(self) -> set[str]:
        """The folders that these files are in, without the root."""
        paths = self.rules | self.commits
        return {path.rpartition("/")[0] for path in paths} - {""}


def steering_of(root: Path) -> Steering:
    """Return the control files of a workspace; they may not exist."""
    repository = repository_of(root)
    moves = repository.moves if repository else []
    outside = [path for path, _ in places_outside(root, IGNORE_FILES)]
    rules = _paths(root, [root / ".git", *moves[:1], *outside])
    return Steering(rules, _paths(root, moves))


def _paths(root: Path, places: Iterable[Path]) -> frozenset[str]:
    return frozenset(
        (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()
        for path in places
    )
