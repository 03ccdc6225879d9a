"""Capturing: switched on for a while, written by one thread that redacts.

While it is off, a request costs one comparison, and a network read nothing more.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct, to_builtins

from byok import __version__
from byok.core.chat import Json
from byok.core.errors import BadRequest
from byok.core.record import Head, Hop, RequestRecord, current_attempt
from byok.core.redact import Redactor
from byok.features.base import Feature, Site, Supplies
from byok.features.capture.capture import MOST_BYTES, Capture, CaptureFolder
from byok.features.capture.scrub import RawPiece, scrub
from byok.features.status import StatusLine
from byok.storage.worker import Worker

DEFAULT_SECONDS = 600.0
LONGEST_SECONDS = 86_400.0
_WRITE_SECONDS = 5.0  # for what is still to be written


class CaptureLimits(Struct, frozen=True):
    """Most bytes of one request, of all that are in memory, and of all files.

    `pieces` are the most of one request.
    """

    request: int = 20_000_000
    memory: int = 64_000_000
    files: int = MOST_BYTES
    pieces: int = 200_000


class CaptureRecorder(Feature):
    """Keeps the bytes of clients' requests while it is on."""

    def __init__(
        self,
        site: Site,
        limits: CaptureLimits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = site.paths.captures
        self._redactor = site.redactor
        self.limits = limits or CaptureLimits()
        self._clock = clock
        self._wall_clock = site.clock
        self._until = 0.0
        self._taps: dict[str, _RequestTap] = {}
        self._writer: CaptureWriter | None = None
        self.taken = 0  # bytes, of all requests
        self.kept = 0  # requests

    def switch_on(self, seconds: float = DEFAULT_SECONDS) -> None:
        """Keep requests that begin within so many seconds, a day at most."""
        self._until = self._clock() + min(seconds, LONGEST_SECONDS)

    def switch_off(self) -> None:
        """Keep no more requests; those in progress are kept to their end."""
        self._until = 0.0

    @property
    def seconds_left(self) -> float:
        """How long it stays on; 0 while it is off."""
        return max(0.0, self._until - self._clock()) if self._until else 0.0

    def configure(self, supplies: Supplies, /) -> None:
        """Delete what is left of earlier days, in the background."""
        if self._writer is None and self._folder.is_dir():
            self._open_writer().start()

    def close(self) -> None:
        """Write what is left. Blocks for seconds."""
        if self._writer is not None:
            self._writer.close()

    async def answer(self, body: Json, /) -> Json:
        """Switch capturing on, off or neither, and tell how it stands.

        Raises:
            BadRequest: 422, the body asks for something else.
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
        """Tell whether it is on, what was kept since the start, and what was lost."""
        writer = self._writer
        return {
            "on": bool(self.seconds_left),
            "seconds": round(self.seconds_left),
            "kept": self.kept,
            "lost": writer.failed + writer.refused if writer else 0,
            "folder": str(self._folder),
        }

    def wait(self, seconds: float) -> bool:
        """Wait until all is written; tell whether it is. Blocks."""
        return self._writer is None or self._writer.wait(seconds)

    @property
    def has_room(self) -> bool:
        """Whether more bytes may be held in memory."""
        released = self._writer.released if self._writer else 0
        return self.taken - released < self.limits.memory

    def request_started(self, record: RequestRecord, /) -> "_RequestTap | None":
        """Return what takes the bytes of the request, None while it is off."""
        if self._until and self._clock() >= self._until:
            self._until = 0.0
        if not self._until:
            return None
        tap = self._taps[record.request_id] = _RequestTap(self, self._clock)
        return tap

    def request_finished(self, record: RequestRecord, /) -> None:
        """Hand the request to the writer; not what came without the token."""
        tap = self._taps.pop(record.request_id, None) if self._taps else None
        if tap is None:
            return

        writer = self._open_writer()
        if not record.is_of_client:
            writer.released += tap.size
            return
        self.kept += 1
        facts = _facts(record, self._wall_clock())
        writer.add(RawCapture(facts, tap.pieces, tap.size))

    def _open_writer(self) -> "CaptureWriter":
        if self._writer is None:
            self._writer = CaptureWriter(
                CaptureFolder(self._folder),
                self._redactor,
                most_bytes=self.limits.files,
                clock=self._wall_clock,
            )
        return self._writer


class _RequestTap:
    """Tap and HeadTap of one request: keeps what passes, within the limits."""

    def __init__(self, recorder: CaptureRecorder, clock: Callable[[], float]) -> None:
        self._recorder = recorder
        self._clock = clock
        self._started = clock()
        self._cut: set[tuple[Hop, int]] = set()
        self.pieces: list[RawPiece] = []
        self.size = 0

    def __call__(self, hop: Hop, data: bytes, /) -> None:
        if data:
            self._take(hop, data, len(data))

    def take_head(self, hop: Hop, head: Head, /) -> None:
        size = len(head.line) + sum(len(n) + len(v) for n, v in head.headers)
        self._take(hop, head, size)

    def _take(self, hop: Hop, content: bytes | Head, size: int) -> None:
        attempt = 0 if hop in (Hop.FROM_CLIENT, Hop.TO_CLIENT) else current_attempt()
        recorder, at = self._recorder, self._clock() - self._started
        limits = recorder.limits
        fits = (
            (hop, attempt) not in self._cut
            and self.size + size <= limits.request
            and len(self.pieces) < limits.pieces
            and recorder.has_room
        )
        if fits:
            self.size += size
            recorder.taken += size
            self.pieces.append(RawPiece(at, hop, attempt, content))
        elif (hop, attempt) not in self._cut and len(self._cut) < limits.pieces:
            # Behind a gap nothing is kept: a secret may have begun in it.
            self._cut.add((hop, attempt))
            self.pieces.append(RawPiece(at, hop, attempt, size))


def _facts(record: RequestRecord, now: float) -> dict[str, Any]:
    """Return what is known of a request; `now` is in seconds since 1970."""
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


# The one thread that redacts captures, writes them and deletes old ones.
#
# What does not fit into its queue, or onto the disk, is counted and forgotten. The log
# says so once.


_log = logging.getLogger(__name__)
_TIDY_SECONDS = 600.0


class RawCapture(NamedTuple):
    """A request that has ended, not yet redacted; `size` are the bytes it holds."""

    facts: dict[str, Any]
    pieces: list[RawPiece]
    size: int


class CaptureWriter(Struct, eq=False):
    """Writes captures until it is closed."""

    folder: CaptureFolder
    redactor: Redactor
    most_bytes: int = MOST_BYTES
    clock: Callable[[], float] = time.time
    released: int = 0  # bytes that were given and are held no more
    failed: int = 0
    refused: int = 0
    _worker: Worker | None = None
    __repr__ = object.__repr__  # it shows nothing of what it holds

    def start(self) -> Worker:
        """Delete what is too old, now and again; returns at once."""
        if self._worker is None:
            tidy = partial(self._attempt, self._tidy)
            self._worker = Worker("capture", chore=tidy, every=_TIDY_SECONDS)
            self._worker.offer(partial(self._attempt, self.folder.sweep))
            self._worker.offer(tidy)
        return self._worker

    def add(self, raw: RawCapture) -> None:
        """Take a request that has ended; returns at once. For one thread."""
        if not self.start().offer(partial(self._keep, raw)):
            self.refused += 1
            self.released += raw.size

    def wait(self, seconds: float) -> bool:
        """Wait until all is written that was given; tell whether it is. Blocks."""
        written = self.start().run(lambda: None)
        return not wait([written], seconds).not_done

    def close(self) -> None:
        """Write what is left, and stop. Blocks, but not for long."""
        if self._worker is not None:
            self._worker.close()

    # In the thread.

    def _keep(self, raw: RawCapture) -> None:
        self._attempt(partial(self._write, raw))
        self.released += raw.size

    def _write(self, raw: RawCapture) -> None:
        pieces = tuple(scrub(raw.pieces, self.redactor))
        facts = {
            name: self.redactor(value) if isinstance(value, str) else value
            for name, value in raw.facts.items()
        }
        self.folder.write(Capture({**facts, "byok": __version__}, pieces))
        self._tidy()

    def _tidy(self) -> None:
        self.folder.tidy(self.clock(), self.most_bytes)

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
