"""L1: the time that byok adds to each event; L3: more clients than allowed streams."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

import aiohttp

from tools.bench.answers import AUGMENT, OPENAI, Reading, parse_answer
from tools.bench.client import Target, ask, session
from tools.bench.generator import Job, Result, run_job
from tools.bench.processes import byok, mock
from tools.bench.spec import Damaged, Spec
from tools.load.outcome import Outcome

_SLICE_SECONDS, _RATE = 5.0, 50
_MIN_ANSWERS = 40  # per client; with fewer, chance alone makes some luckier


async def l1(seconds: float, *, streams: int = 32) -> Outcome:
    """Run 32 streams of 50 events/s, to byok and to the mock itself in turns."""
    turns = max(1, round(seconds / _SLICE_SECONDS / 2))
    length = seconds / turns / 2
    spec = Spec(chunks=max(1, round(_RATE * length)), pause=1 / _RATE)
    results: dict[str, list[Result]] = {"direct": [], "byok": []}
    with mock() as upstream, byok(upstream.url) as daemon:
        targets = (Target("direct", f"{upstream.url}/v1", OPENAI), daemon.target)
        for _ in range(turns):
            for target in targets:
                job = Job(target, spec, streams, length / 2)
                results[target.name].append(await run_job(job))
    outcome = Outcome("L1")
    for index, (name, maximum) in enumerate((("p50", 2), ("p99", 15))):
        direct, through_byok = (
            median(result.way[index] for result in results[target] if result.way)
            for target in ("direct", "byok")
        )
        outcome.goal(f"added {name}", through_byok - direct, maximum, " ms")
        outcome.note(f"direct {direct:.2f} ms")
    outcome.goal("damaged streams", sum(r.damaged for r in results["byok"]), 0)
    outcome.note(f"{sum(result.chunks for result in results['byok'])} events")
    reasons = [reason for result in results["byok"] for reason in result.reasons]
    outcome.figures += reasons[:3]
    return outcome


@dataclass
class _Crowd:
    """Clients that request more streams than byok serves at a time."""

    target: Target
    spec: Spec
    end: float
    patient: bool  # comes back at once after an answer, else after a pause
    served: Counter[int] = field(default_factory=Counter)
    turned_away: int = 0
    wrong: list[str] = field(default_factory=list)

    async def client(self, http: aiohttp.ClientSession, number: int) -> None:
        """Send requests one after the other; wait as long as Retry-After says."""
        luck = random.Random(number)
        requests = 0
        self.served[number] = 0
        while time.monotonic() < self.end:
            requests += 1
            stream = f"{number:04x}{requests:04x}"
            spec = Spec(stream, self.spec.chunks, pause=self.spec.pause)
            reading = await ask(http, self.target, spec)
            pause = self._count(spec, reading, number)
            if not self.patient or reading.status != 200:
                await asyncio.sleep(pause * luck.uniform(1, 1.25))

    def _count(self, spec: Spec, reading: Reading, number: int) -> float:
        """Count one answer; return the seconds to wait before the next request."""
        if reading.status == 503 and reading.retry_after:
            self.turned_away += 1
            return float(reading.retry_after)
        try:
            parse_answer(reading, AUGMENT).check(spec)
            self.served[number] += 1
        except Damaged as error:
            self.wrong.append(str(error))
        return 2.0

    @property
    def spread(self) -> float:
        """The ratio of the most answers of a client to the fewest."""
        return max(self.served.values()) / max(0.5, min(self.served.values()))


async def l3(
    seconds: float, *, clients: int = 200, places: int = 32, chunks: int = 25
) -> Outcome:
    """Run 200 clients for 32 places: first with room to wait for all, then not."""
    outcome = Outcome("L3")
    limits = {"streams": places, "waiting": clients, "wait_seconds": 30}
    crowd = await _run_crowd(seconds / 2, limits, clients, chunks, patient=True)
    counts = crowd.served.values()
    outcome.goal("room for all: max/min served", crowd.spread, 2)
    outcome.note(f"served {min(counts)} to {max(counts)} each")
    outcome.goal("turned away", crowd.turned_away, 0)
    wrong = crowd.wrong
    limits = {"streams": places, "waiting": places, "wait_seconds": 10}
    crowd = await _run_crowd(seconds / 2, limits, clients, 2 * chunks, patient=False)
    counts = crowd.served.values()
    text = "little room: max/min served"
    if sum(counts) / clients >= _MIN_ANSWERS:
        outcome.goal(text, crowd.spread, 2)
    else:
        outcome.note(f"{text} {crowd.spread:.2f} (too few to judge)")
    outcome.note(f"served {min(counts)} to {max(counts)} each")
    outcome.note(f"turned away {crowd.turned_away} times with 503 and Retry-After")
    outcome.goal("other answers", len(wrong) + len(crowd.wrong), 0)
    outcome.figures += (wrong + crowd.wrong)[:3]
    return outcome


async def _run_crowd(
    seconds: float,
    limits: Mapping[str, int],
    clients: int,
    chunks: int,
    *,
    patient: bool,
) -> _Crowd:
    spec = Spec(chunks=chunks, pause=1 / _RATE)
    with mock() as upstream, byok(upstream.url, limits=limits) as daemon:
        crowd = _Crowd(daemon.target, spec, time.monotonic() + seconds, patient)
        async with session() as http, asyncio.TaskGroup() as group:
            for number in range(clients):
                group.create_task(crowd.client(http, number))
    return crowd
