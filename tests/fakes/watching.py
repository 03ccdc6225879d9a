"""Watches whose events a test gives."""

import queue
import threading
from collections.abc import Callable, Collection
from pathlib import Path

from byok.search.index.workspace.watch import Found

Step = Found | Exception


class PlayedWatches:
    """Makes watches that play what stands in `queue`: paths, "anything", errors.

    `error` is raised when a folder is entered, `made` counts how often all began anew.
    """

    def __init__(self, *steps: Step) -> None:
        self.queue: queue.SimpleQueue[Step] = queue.SimpleQueue()
        for step in steps:
            self.queue.put(step)
        self.entered: list[str] = []
        self.error: OSError | None = None
        self.made = 0

    def __call__(self, root: Path) -> "_Played":
        self.made += 1
        return _Played(self)

    def told(self, *paths: str) -> None:
        """Let something happen to paths."""
        self.queue.put(frozenset(paths))


class _Played:
    def __init__(self, play: PlayedWatches) -> None:
        self._play = play
        self._closing = threading.Event()

    def enter(self, path: str) -> None:
        if self._play.error:
            raise self._play.error
        self._play.entered.append(path)

    def keep(self, tops: Collection[str], entered: Collection[str]) -> None:
        pass

    def follow(self, put: Callable[[Found], None]) -> None:
        put(frozenset())
        while not self._closing.is_set():
            try:
                step = self._play.queue.get(timeout=0.01)
            except queue.Empty:
                continue
            if isinstance(step, Exception):
                raise step
            put(step)

    def close(self) -> None:
        self._closing.set()
