"""One thread for what no answer may wait for: files that are only a help.

Work is done in its order. So much of it may wait, and what is offered beyond that is
refused. A bug in one piece is logged and stops no other. Closing does what is left, but
not for long: the thread keeps nothing from ending, whatever the disk does.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import TypeVar

_log = logging.getLogger(__name__)
_MOST_WAITING = 200
_LAST_SECONDS = 5.0
T = TypeVar("T")


class Worker:
    """A thread that begins with its first work; its methods may be called anywhere.

    Whenever nothing was to do for the seconds of `every`, it does the `chore`.
    """

    def __init__(
        self,
        name: str,
        *,
        chore: Callable[[], object] = lambda: None,
        every: float | None = None,
    ) -> None:
        self._name = name
        self._chore = chore
        self._every = every
        self._waiting = SimpleQueue[Callable[[], object] | None]()
        self._closing = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def is_closed(self) -> bool:
        """Whether it takes no more work."""
        return self._closing.is_set()

    def offer(self, work: Callable[[], object]) -> bool:
        """Do something behind all that waits; tell whether there was room for it."""
        if self.is_closed or self._waiting.qsize() >= _MOST_WAITING:
            return False
        self._put(work)
        return True

    def run(self, work: Callable[[], T]) -> "Future[T]":
        """Do something for which somebody waits, behind all that was given before."""
        future = Future[T]()

        def answer() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except Exception as error:
                    future.set_exception(error)

        if self.is_closed:
            raise RuntimeError(f"the thread {self._name} has ended")
        self._put(answer)
        return future

    def pause(self, seconds: float) -> None:
        """Wait between two pieces of work, but not while it is closed."""
        self._closing.wait(seconds)

    def close(
        self, last: Callable[[], object] = lambda: None, seconds: float = _LAST_SECONDS
    ) -> None:
        """Do what is left, then what is `last`. Blocks for so many seconds at most."""
        if self.is_closed:
            return
        self._closing.set()
        self._put(last)
        self._put(None)
        if self._thread is not None:
            self._thread.join(seconds)

    def _put(self, work: Callable[[], object] | None) -> None:
        self._waiting.put(work)
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name=self._name, daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                work = self._waiting.get(timeout=self._every)
            except Empty:
                work = self._chore
            if work is None:
                return
            try:
                work()
            except Exception:
                _log.exception("work of the thread %s failed", self._name)
            del work  # it may hold megabytes, and the next may come in an hour
