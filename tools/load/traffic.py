"""Streams and small requests side by side: L2, and the long run with faults."""

import asyncio
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import aiohttp

from tools.bench.client import Target, ask, session
from tools.bench.processes import byok, memory_mib, mock, open_files
from tools.bench.spec import Spec
from tools.load.faults import SILENCE, WHOLE, Draw, draw_stream, verdict
from tools.load.outcome import Outcome, slope_per_hour

_SMALL: tuple[tuple[str, str, Any], ...] = (
    ("POST", "/find-missing", {"model": "", "mem_object_names": ["a" * 64] * 20}),
    ("POST", "/get-models", {}),
    ("POST", "/record-session-events", {"events": [{"event": "x"}] * 5}),
    ("GET", "/health", None),
    ("GET", "/v1/models", None),
)
_RATE, _WORKERS, _WARM_UP_SECONDS = 50, 8, 300.0
_SLOPE_SECONDS = 600.0  # of samples; the slope of fewer means nothing


@dataclass
class Traffic:
    """The requests that are sent to one daemon, and their results."""

    target: Target
    end: float
    faults: random.Random | None = None
    longest: int = 300  # chunks of a stream with faults
    kinds: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    small: int = 0
    small_wrong: int = 0
    memory: list[tuple[float, float]] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    def draw(self) -> Draw:
        """Choose the next stream."""
        stream = f"{next(self._numbers):08x}"
        if self.faults is not None:
            return draw_stream(self.faults, stream, self.longest)
        seconds = max(1.0, min(10.0, self.end - time.monotonic()))
        return Draw(Spec(stream, round(_RATE * seconds), pause=1 / _RATE), WHOLE)

    async def streams(self, http: aiohttp.ClientSession) -> None:
        """Request one stream after the other, as one client."""
        while time.monotonic() < self.end:
            draw = self.draw()
            reading = await ask(http, self.target, draw.spec, draw.leaves)
            problem = verdict(draw, reading)
            self.kinds[draw.kind] += 1
            if problem:
                self.wrong.append(f"{draw.kind} {draw.spec.message}: {problem}")
                _say(f"WRONG {self.wrong[-1]}")

    async def smalls(self, http: aiohttp.ClientSession, rate: float) -> None:
        """Send small requests at a steady rate."""
        start = time.monotonic()
        for number in count():
            moment = start + number / rate
            if moment >= self.end:
                return
            await asyncio.sleep(max(0.0, moment - time.monotonic()))
            method, path, body = _SMALL[number % len(_SMALL)]
            self.small += 1
            try:
                async with http.request(
                    method,
                    self.target.url + path,
                    json=body,
                    headers=self.target.headers,
                ) as response:
                    await response.read()
                    right = response.status == 200
            except aiohttp.ClientError as error:
                _say(f"WRONG {path}: {error!r}")
                right = False
            self.small_wrong += not right

    async def samples(self, start: float, every: float) -> None:
        """Record memory and descriptors at regular intervals."""
        for number in count():
            moment = start + number * every
            if moment >= self.end:
                return
            await asyncio.sleep(max(0.0, moment - time.monotonic()))
            rss, files = memory_mib(self.target.pid), open_files(self.target.pid)
            self.memory.append((moment - start, rss))
            self.files.append(files)
            if number % 6 == 0:
                _say(
                    f"{moment - start:6.0f} s: RSS {rss:.1f} MiB, {files} descriptors, "
                    f"{sum(self.kinds.values())} streams, {self.small} small requests, "
                    f"{len(self.wrong) + self.small_wrong} wrong"
                )

    async def run(self, seconds: float, streams: int, rate: float) -> None:
        """Run all clients, small requests and samples concurrently."""
        start = time.monotonic()
        self.end = start + seconds
        async with session() as http, asyncio.TaskGroup() as group:
            for _ in range(streams):
                group.create_task(self.streams(http))
            for _ in range(_WORKERS):
                group.create_task(self.smalls(http, rate / _WORKERS))
            group.create_task(self.samples(start, min(10.0, seconds / 20)))

    def summarise(self, outcome: Outcome) -> Outcome:
        """Add the figures and goals to an outcome."""
        last = self.memory[-1][0]
        warm = _WARM_UP_SECONDS if last > 2 * _WARM_UP_SECONDS else last / 2
        later = [sample for sample in self.memory if sample[0] >= warm]
        slope, long = slope_per_hour(later), last - warm >= _SLOPE_SECONDS
        outcome.goal("wrong streams", len(self.wrong), 0)
        outcome.goal("wrong small answers", self.small_wrong, 0)
        outcome.goal("highest RSS", max(rss for _, rss in self.memory), 250, " MiB")
        if long:
            outcome.goal("slope of RSS", slope, 1, " MiB/h")
        outcome.note(f"RSS after {warm:.0f} s {later[0][1]:.1f}, at the end ")
        outcome.figures[-1] += f"{later[-1][1]:.1f} MiB"
        outcome.note(f"descriptors {min(self.files)} to {max(self.files)}")
        outcome.note(f"{sum(self.kinds.values())} streams")
        outcome.note(f"{self.small} small requests")
        if len(self.kinds) > 1:
            kinds = sorted(self.kinds.items())
            outcome.note(", ".join(f"{kind} {number}" for kind, number in kinds))
        return outcome


async def l2(seconds: float, *, streams: int = 32, rate: float = 200) -> Outcome:
    """Run 32 streams and 200 small requests a second."""
    with mock() as upstream, byok(upstream.url) as daemon:
        traffic = Traffic(daemon.target, 0)
        await traffic.run(seconds, streams, rate)
        return traffic.summarise(Outcome("L2"))


async def soak(
    seconds: float,
    *,
    streams: int = 11,
    rate: float = 67,
    seed: int = 1,
    longest: int = 300,
) -> Outcome:
    """Run a third of L2 for long, on an upstream that breaks in many ways."""
    with (
        mock() as upstream,
        byok(upstream.url, timeout=SILENCE, patience=SILENCE) as daemon,
    ):
        traffic = Traffic(daemon.target, 0, random.Random(seed), longest)
        await traffic.run(seconds, streams, rate)
        return traffic.summarise(Outcome("soak"))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
