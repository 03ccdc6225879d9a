"""A thread for work that no answer may wait for, such as writing auxiliary files.

Tasks run in their order, from a bounded queue that refuses further ones. A bug in one
task is logged and stops no other. Closing runs the queued tasks, but not for long: a
hanging disk cannot keep the process from ending.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import TypeVar

_log = logging.getLogger(__name__)
_MAX_QUEUED = 200
_CLOSE_SECONDS = 5.0
T = TypeVar("T")


class Worker:
    """A thread that starts with its first task; any thread may call its methods.

    Whenever the queue was empty for `every` seconds, it runs the `chore`.
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
        self._queue = SimpleQueue[Callable[[], object] | None]()
        self._closing = threading.Event()
        self._start_lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def is_closed(self) -> bool:
        """Whether it accepts no more work."""
        return self._closing.is_set()

    def offer(self, work: Callable[[], object]) -> bool:
        """Queue some work; return False if the worker is closed or the queue full."""
        if self.is_closed or self._queue.qsize() >= _MAX_QUEUED:
            return False
        self._put(work)
        return True

    def run(self, work: Callable[[], T]) -> "Future[T]":
        """Queue some work even if the queue is full; return a future of its result."""
        future = Future[T]()

        def run_work() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except Exception as error:
                    future.set_exception(error)

        if self.is_closed:
            raise RuntimeError(f"the thread {self._name} has ended")
        self._put(run_work)
        return future

    def pause(self, seconds: float) -> None:
        """Wait for some seconds inside a task, or until the worker is closed."""
        self._closing.wait(seconds)

    def close(
        self, last: Callable[[], object] = lambda: None, seconds: float = _CLOSE_SECONDS
    ) -> None:
        """Run the queued work, then `last`; wait at most some seconds for the end."""
        if self.is_closed:
            return
        self._closing.set()
        self._put(last)
        self._put(None)
        if self._thread is not None:
            self._thread.join(seconds)

    def _put(self, work: Callable[[], object] | None) -> None:
        self._queue.put(work)
        with self._start_lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name=self._name, daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                work = self._queue.get(timeout=self._every)
            except Empty:
                work = self._chore
            if work is None:
                return
            try:
                work()
            except Exception:
                _log.exception("work of the thread %s failed", self._name)
            del work  # it may hold megabytes, and the next one may come in an hour
