"""Captures requests while it is switched on; one thread redacts and writes them.

While it is off, it costs one comparison a request, and nothing for a network read.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from functools import partial
from typing import Any

from msgspec import Struct, to_builtins

from byok import __version__
from byok.core.chat import Json
from byok.core.errors import BadRequest
from byok.core.record import Head, Hop, RequestRecord, current_attempt
from byok.features.base import Feature, Site, Supplies
from byok.features.capture.capture import MOST_BYTES, Capture, CaptureFolder
from byok.features.capture.scrub import RawPiece, scrub
from byok.features.status import StatusLine
from byok.storage.worker import Worker

_log = logging.getLogger(__name__)
DEFAULT_SECONDS = 600.0
LONGEST_SECONDS = 86_400.0
_TIDY_SECONDS = 600.0
_WRITE_SECONDS = 5.0  # to finish writing


class CaptureLimits(Struct, frozen=True):
    """Maximum bytes of one request, of all in memory, and of all files.

    `pieces` is the maximum number of pieces of one request.
    """

    request: int = 20_000_000
    memory: int = 64_000_000
    files: int = MOST_BYTES
    pieces: int = 200_000


class CaptureRecorder(Feature):
    """Captures the bytes of clients' requests while it is on."""

    def __init__(
        self,
        site: Site,
        limits: CaptureLimits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = CaptureFolder(site.paths.captures)
        self._redactor = site.redactor
        self.limits = limits or CaptureLimits()
        self._clock = clock
        self._wall_clock = site.clock
        self._until = 0.0
        self._taps: dict[str, _RequestTap] = {}
        tidy = partial(self._attempt, self._tidy)
        self._worker = Worker("capture", chore=tidy, every=_TIDY_SECONDS)
        self._has_begun = False
        self.taken = 0  # bytes of all requests
        self._written = 0  # bytes that the thread has processed
        self.kept = 0  # requests
        self._failed = 0
        self._refused = 0

    def switch_on(self, seconds: float = DEFAULT_SECONDS) -> None:
        """Capture requests that begin within so many seconds, a day at most."""
        self._until = self._clock() + min(seconds, LONGEST_SECONDS)

    def switch_off(self) -> None:
        """Capture no more requests; those in progress are captured to their end."""
        self._until = 0.0

    @property
    def seconds_left(self) -> float:
        """How long it stays on; 0 while it is off."""
        return max(0.0, self._until - self._clock()) if self._until else 0.0

    def configure(self, supplies: Supplies, /) -> None:
        """Delete captures of earlier days, in the background."""
        if self._folder.path.is_dir():
            self._begin()

    def close(self) -> None:
        """Write pending captures. Blocks for seconds."""
        self._worker.close()

    async def answer(self, body: Json, /) -> Json:
        """Switch capturing on, off or neither, and return its state.

        Raises:
            BadRequest: 422, the body is invalid.
        """
        match body.get("switch", ""):
            case "":
                pass
            case "off":
                self.switch_off()
            case "on":
                seconds = body.get("seconds", DEFAULT_SECONDS)
                if type(seconds) not in (int, float) or not seconds >= 1:
                    raise BadRequest("Capturing lasts at least a second.", status=422)
                self.switch_on(seconds)
            case _:
                raise BadRequest("Switch capturing on or off.", status=422)
        await asyncio.to_thread(self.wait, _WRITE_SECONDS)
        return self.describe()

    async def status(self) -> Sequence[StatusLine]:
        """Return for how long it is on."""
        if not (seconds := round(self.seconds_left)):
            return ()
        text = f"on for {seconds} more seconds, {self.kept} requests recorded"
        values = {"seconds": seconds, "count": self.kept}
        return (StatusLine(text, "capture.on", values, warns=True),)

    def describe(self) -> dict[str, Any]:
        """Return whether it is on, and the numbers of captured and lost requests."""
        return {
            "on": bool(self.seconds_left),
            "seconds": round(self.seconds_left),
            "kept": self.kept,
            "lost": self._failed + self._refused,
            "folder": str(self._folder.path),
        }

    def wait(self, seconds: float) -> bool:
        """Wait until all is written; tell whether it was in time. Blocks."""
        return not wait([self._worker.run(lambda: None)], seconds).not_done

    @property
    def has_memory(self) -> bool:
        """Whether more bytes may be stored in memory."""
        return self.taken - self._written < self.limits.memory

    def request_started(self, record: RequestRecord, /) -> "_RequestTap | None":
        """Return a tap for the bytes of the request, None while it is off."""
        if self._until and self._clock() >= self._until:
            self._until = 0.0
        if not self._until:
            return None
        tap = self._taps[record.request_id] = _RequestTap(self, self._clock)
        return tap

    def request_finished(self, record: RequestRecord, /) -> None:
        """Pass the request to the thread, unless it came without the token."""
        tap = self._taps.pop(record.request_id, None) if self._taps else None
        if tap is None:
            return
        if record.is_of_client:
            self.kept += 1
            facts = _facts(record, self._wall_clock())
            self._begin()
            if self._worker.offer(partial(self._process, facts, tap.pieces, tap.size)):
                return
            self._refused += 1
        self.taken -= tap.size

    def _begin(self) -> None:
        """Start to delete old captures in the thread, now and regularly."""
        if not self._has_begun:
            self._has_begun = True
            self._worker.offer(partial(self._attempt, self._folder.sweep))
            self._worker.offer(partial(self._attempt, self._tidy))

    # ---- In the thread

    def _process(
        self, facts: dict[str, Any], pieces: list[RawPiece], size: int
    ) -> None:
        try:
            self._attempt(partial(self._write, facts, pieces))
        finally:
            self._written += size

    def _write(self, facts: dict[str, Any], pieces: list[RawPiece]) -> None:
        scrubbed = tuple(scrub(pieces, self._redactor))
        facts = {
            name: self._redactor(value) if isinstance(value, str) else value
            for name, value in facts.items()
        }
        self._folder.write(Capture({**facts, "byok": __version__}, scrubbed))
        self._tidy()

    def _tidy(self) -> None:
        self._folder.tidy(self._wall_clock(), self.limits.files)

    def _attempt(self, work: Callable[[], object]) -> None:
        """Run `work`; failures are counted, and logged once."""
        is_done = False
        try:
            work()
            is_done = True
        except (OSError, ValueError, RecursionError, MemoryError) as error:
            if not self._failed:
                _log.warning("captures cannot be kept: %s", type(error).__name__)
        finally:
            self._failed += not is_done


class _RequestTap:
    """Tap of one request: stores the pieces that pass, within the limits."""

    def __init__(self, recorder: CaptureRecorder, clock: Callable[[], float]) -> None:
        self._recorder = recorder
        self._clock = clock
        self._started = clock()
        self._cut: set[tuple[Hop, int]] = set()
        self.pieces: list[RawPiece] = []
        self.size = 0

    def __call__(self, hop: Hop, piece: bytes | Head, /) -> None:
        if not piece:
            return
        size = _size(piece) if isinstance(piece, Head) else len(piece)
        attempt = 0 if hop in (Hop.FROM_CLIENT, Hop.TO_CLIENT) else current_attempt()
        recorder, at = self._recorder, self._clock() - self._started
        limits = recorder.limits
        fits = (
            (hop, attempt) not in self._cut
            and self.size + size <= limits.request
            and len(self.pieces) < limits.pieces
            and recorder.has_memory
        )
        if fits:
            self.size += size
            recorder.taken += size
            self.pieces.append(RawPiece(at, hop, attempt, piece))
        elif (hop, attempt) not in self._cut and len(self._cut) < limits.pieces:
            # Nothing is stored after a gap: a secret may have begun in it.
            self._cut.add((hop, attempt))
            self.pieces.append(RawPiece(at, hop, attempt, size))


def _size(head: Head) -> int:
    return len(head.line) + sum(len(n) + len(v) for n, v in head.headers)


def _facts(record: RequestRecord, now: float) -> dict[str, Any]:
    """Return the facts about a request; `now` is in seconds since 1970."""
    usage = record.total_usage
    return {
        "id": record.request_id,
        "started": round(now - record.seconds, 3),
        "seconds": round(record.seconds, 6),
        "first_byte": record.first_byte,
        "method": record.method,
        "endpoint": record.endpoint,
        "client": record.client,
        "purpose": str(record.purpose),
        "model_asked": record.model_asked,
        "upstream": record.upstream,
        "model": record.model,
        "attempts": record.attempts,
        "usage": to_builtins(usage) if usage else None,
        "repairs": record.repairs,
        "dropped_calls": record.dropped_calls,
        "prompt": record.prompt,
        "status": record.status,
        "outcome": record.outcome.value,
        "error": record.error,
        "error_class": record.error_class,
    }
