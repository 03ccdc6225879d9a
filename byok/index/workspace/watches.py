"""File watching by operating system: one interface, chosen by platform."""

import sys
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, Protocol

import watchfiles

# Relative paths, with `/`; None: some were lost, so anything may have changed.
Found = frozenset[str] | None
_STEP_MS, _TIMEOUT_MS = 50, 100


class Watches(Protocol):
    """Watches folders; only those that a walk enters need a watch."""

    def enter(self, path: str) -> None:
        """Watch a folder that is about to be listed."""

    def keep(self, tops: Collection[str], entered: Collection[str]) -> None:
        """Remove the watches at and below `tops` that were not entered again."""

    def follow(self, put: Callable[[Found], None]) -> None:
        """Hand over what happened, first that it has begun, until closed."""

    def close(self) -> None:
        """Let `follow` end; any thread may ask."""


def watches_of(root: Path) -> Watches:
    """Return the watches of this system; OSError if it has no more of them."""
    if sys.platform == "linux":
        from byok.index.workspace.inotify import FolderWatches

        return FolderWatches(root)
    return TreeWatch(root)


class TreeWatch:
    """One watch on a whole tree, for systems that have that; follows no links."""

    def __init__(
        self, root: Path, watch: Callable[..., Iterator[Any]] = watchfiles.watch
    ) -> None:
        self._root = root
        self._watch = watch
        self._closing = threading.Event()

    def enter(self, path: str) -> None:
        """Everything is watched already."""

    def keep(self, tops: Collection[str], entered: Collection[str]) -> None:
        """Everything stays watched."""

    def follow(self, put: Callable[[Found], None]) -> None:
        """Hand over what happened, first that it has begun, until closed.

        Raises:
            OSError, RuntimeError: it is not watched any more.
        """
        root = str(self._root)
        begun = False
        for found in self._watch(
            self._root,
            watch_filter=None,
            debounce=_STEP_MS,
            step=_STEP_MS,
            stop_event=self._closing,
            rust_timeout=_TIMEOUT_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            recursive=True,
            ignore_permission_denied=True,
        ):
            if (watchfiles.Change.deleted, root) in found:
                raise FileNotFoundError("the folder is gone")
            if found or not begun:
                put(
                    frozenset(
                        _relative(path, root) for _, path in found if path != root
                    )
                )
            begun = True

    def close(self) -> None:
        """Let `follow` end."""
        self._closing.set()


def _relative(path: str, root: str) -> str:
    return path.removeprefix(root)[1:].replace("\\", "/")
