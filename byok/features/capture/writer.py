"""The one thread that redacts captures, writes them and deletes old ones.

It must never delay or fail an answer: what does not fit into its queue, or onto the
disk, is counted and forgotten. The log says so once.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from byok import __version__
from byok.features.capture.capture import Capture
from byok.features.capture.folder import MOST_BYTES, CaptureFolder
from byok.features.capture.scrub import RawPiece, scrub
from byok.redact import Redactor

_log = logging.getLogger(__name__)
_TIDY_SECONDS = 600.0
_LAST_SECONDS = 3.0
_MOST_WAITING = 200


class RawCapture(NamedTuple):
    """A request that has ended, not yet redacted; `size` are the bytes it holds."""

    facts: dict[str, Any]
    pieces: list[RawPiece]
    size: int


class CaptureWriter:
    """Writes captures until it is closed."""

    def __init__(
        self,
        folder: CaptureFolder,
        redactor: Redactor,
        *,
        most_bytes: int = MOST_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = folder
        self.released = 0  # bytes that were given and are held no more
        self.failed = 0
        self.refused = 0
        self._redactor = redactor
        self._most_bytes = most_bytes
        self._clock = clock
        self._waiting: deque[RawCapture] = deque()
        self._wake, self._stop = threading.Event(), threading.Event()
        self._idle = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Delete what is too old, now and again; returns at once."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="capture", daemon=True
            )
            self._thread.start()

    def add(self, raw: RawCapture) -> None:
        """Take a request that has ended; returns at once. For one thread."""
        if self._stop.is_set() or len(self._waiting) >= _MOST_WAITING:
            self.refused += 1
            self.released += raw.size
            return
        self._idle.clear()
        self._waiting.append(raw)
        self.start()
        self._wake.set()

    def wait(self, seconds: float) -> bool:
        """Wait until all is written that was given; tell whether it is. Blocks."""
        return not self._waiting or self._idle.wait(seconds)

    def close(self) -> None:
        """Write what is left, and stop. Blocks, but not for long."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_LAST_SECONDS)

    # In the thread.

    def _run(self) -> None:
        self._attempt(self.folder.sweep)
        self._attempt(self._tidy)
        while not self._stop.is_set():
            self._wake.wait(_TIDY_SECONDS)
            self._wake.clear()
            self._write_all()
            self._attempt(self._tidy)
        self._write_all()

    def _write_all(self) -> None:
        while self._waiting:
            raw = self._waiting[0]
            self._attempt(lambda raw=raw: self._write(raw))  # type: ignore[misc]
            self.released += raw.size
            self._waiting.popleft()
        self._idle.set()

    def _write(self, raw: RawCapture) -> None:
        pieces = tuple(scrub(raw.pieces, self._redactor))
        facts = {
            name: self._redactor(value) if isinstance(value, str) else value
            for name, value in raw.facts.items()
        }
        self.folder.write(Capture({**facts, "byok": __version__}, pieces))
        self._tidy()

    def _tidy(self) -> None:
        self.folder.tidy(self._clock(), self._most_bytes)

    def _attempt(self, work: Callable[[], object]) -> None:
        try:
            work()
        except (OSError, ValueError, RecursionError, MemoryError) as error:
            if not self.failed:
                _log.warning("captures cannot be kept: %s", type(error).__name__)
            self.failed += 1
        except Exception:  # a bug; the thread has to live for later requests
            _log.exception("a capture is lost")
            self.failed += 1
