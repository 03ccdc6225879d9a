"""The load generator, a process of its own: one job a line in, one result a line out.

While a job runs it only notes what it reads; everything is checked afterwards.
"""

import asyncio
import gc
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from statistics import quantiles

import aiohttp

from tools.bench.answers import Reading, understood
from tools.bench.client import Target, ask, session
from tools.bench.spec import Damaged, Spec

_numbers = count(1)


@dataclass(frozen=True)
class Job:
    """`streams` clients that ask `target` for streams one after the other."""

    target: Target
    spec: Spec
    streams: int
    seconds: float


@dataclass
class Result:
    """What came; times in milliseconds."""

    seconds: float = 0.0
    requests: int = 0
    chunks: int = 0
    damaged: int = 0
    reasons: list[str] = field(default_factory=list)
    first: list[float] = field(default_factory=list)  # p50, p99 of the first chunk
    way: list[float] = field(default_factory=list)  # p50, p99 from sent to arrived


def halves(values: Sequence[float]) -> list[float]:
    """Return the median and the 99th percentile of seconds, in milliseconds."""
    if len(values) < 2:
        return [1000 * value for value in values] * 2
    cuts = quantiles(values, n=100, method="inclusive")
    return [1000 * cuts[49], 1000 * cuts[98]]


async def run_job(job: Job) -> Result:
    """Run a job to its end and check everything that came."""
    kept: list[tuple[Spec, Reading]] = []
    gc.collect()
    gc.disable()
    async with session() as http:
        start = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(job.streams):
                group.create_task(_client(http, job, number, kept))
        seconds = time.monotonic() - start
    gc.enable()
    result = checked(kept, job.target.dialect)
    result.seconds = seconds
    return result


async def _client(
    http: aiohttp.ClientSession, job: Job, number: int, kept: list[tuple[Spec, Reading]]
) -> None:
    end = time.monotonic() + job.seconds
    if job.spec.pause:  # neither all at once, nor all in step
        late = job.seconds / 5 + job.spec.pause
        await asyncio.sleep(late * number / job.streams)
    while time.monotonic() < end:
        spec = replace(job.spec, stream=f"{next(_numbers):08x}")
        kept.append((spec, await ask(http, job.target, spec)))
        if kept[-1][1].failure or kept[-1][1].status != 200:
            await asyncio.sleep(0.1)


def checked(kept: Sequence[tuple[Spec, Reading]], dialect: str) -> Result:
    """Check each stream against its spec."""
    result = Result(requests=len(kept))
    first: list[float] = []
    ways: list[float] = []
    for spec, reading in kept:
        try:
            answer = understood(reading, dialect)
            ways += answer.check(spec)
        except Damaged as error:
            result.damaged += 1
            if len(result.reasons) < 5:
                result.reasons.append(str(error))
            continue
        result.chunks += spec.chunks + spec.calls * spec.fragments
        if answer.pieces:
            first.append(answer.pieces[0][0] - reading.asked)
    result.first, result.way = halves(first), halves(ways)
    return result


def main() -> None:
    """Read jobs until the input ends."""
    for line in sys.stdin:
        given = json.loads(line)
        job = Job(
            Target(**given["target"]),
            Spec(**given["spec"]),
            given["streams"],
            given["seconds"],
        )
        print(json.dumps(asdict(run(job))), flush=True)


def run(job: Job) -> Result:
    """Run a job on uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(run_job(job))
    return uvloop.run(run_job(job))


if __name__ == "__main__":
    main()
