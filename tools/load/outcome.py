"""The figures of a load run and its missed goals, and the time of control requests."""

import http.client
import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

_TIMEOUT_SECONDS = 30.0


@dataclass
class Outcome:
    """The result of one run, printed as one line."""

    case: str
    figures: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Add a figure that is no goal."""
        self.figures.append(text)

    def goal(self, name: str, value: float, maximum: float, unit: str = "") -> None:
        """Add a figure with a maximum; NaN is unknown, and does not miss the goal."""
        text = "unknown" if math.isnan(value) else f"{value:.4g}{unit}"
        self.figures.append(f"{name} {text} (goal {maximum:g})")
        if value > maximum:
            self.missed.append(name)

    def line(self) -> str:
        """Write the run as one line."""
        verdict = f"MISSED {', '.join(self.missed)}" if self.missed else "ok"
        return f"{self.case}: {verdict}: {'; '.join(self.figures)}"


def slope_per_hour(samples: Sequence[tuple[float, float]]) -> float:
    """Fit a line through (seconds, value); NaN for fewer than three samples."""
    if len(samples) < 3:
        return math.nan
    middle = sum(time for time, _ in samples) / len(samples)
    level = sum(value for _, value in samples) / len(samples)
    over = sum((time - middle) * (value - level) for time, value in samples)
    under = sum((time - middle) ** 2 for time, _ in samples)
    return 3600 * over / under if under else math.nan


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a `share` of all values lies; NaN without values."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Control:
    """A thread that sends GET /health every `pause` seconds within the block.

    It is a thread, so that its times do not include work of the test. With `fresh` each
    request has a new connection.
    """

    def __init__(self, url: str, pause: float = 0.02, *, fresh: bool = False) -> None:
        self._address = urlsplit(url).netloc
        self._pause = pause
        self._fresh = fresh
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._connection = self._connect()
        self.seconds: list[float] = []
        self.failed = 0

    def __enter__(self) -> Self:
        self._ask()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while not self._over.wait(self._pause):
            self._ask()

    def _ask(self) -> None:
        start = time.monotonic()
        try:
            self._connection.request("GET", "/health")
            answer = self._connection.getresponse()
            answer.read()
            good = answer.status == 200
        except (OSError, http.client.HTTPException):
            good = False
        self.seconds.append(time.monotonic() - start)
        self.failed += not good
        if self._fresh or not good:
            self._connection.close()
            self._connection = self._connect()

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._address, timeout=_TIMEOUT_SECONDS)
