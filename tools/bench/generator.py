"""The load generator, a separate process: each line of input is a job.

It prints the result as a line. While a job runs, it only records its reads; they are
parsed and checked afterwards.
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

from tools.bench.answers import Reading, parse_answer
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
    """The figures of a job; times in milliseconds."""

    seconds: float = 0.0
    requests: int = 0
    chunks: int = 0
    damaged: int = 0
    reasons: list[str] = field(default_factory=list)
    first: list[float] = field(default_factory=list)  # p50, p99 of the first chunk
    way: list[float] = field(default_factory=list)  # p50, p99 from sent to arrived


def median_and_p99(values: Sequence[float]) -> list[float]:
    """Return the median and the 99th percentile of seconds, in milliseconds."""
    if len(values) < 2:
        return [1000 * value for value in values] * 2
    cuts = quantiles(values, n=100, method="inclusive")
    return [1000 * cuts[49], 1000 * cuts[98]]


async def run_job(job: Job) -> Result:
    """Run a job to its end, and check all answers."""
    readings: list[tuple[Spec, Reading]] = []
    gc.collect()
    gc.disable()
    async with session() as http:
        start = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(job.streams):
                group.create_task(_client(http, job, number, readings))
        seconds = time.monotonic() - start
    gc.enable()
    result = check_streams(readings, job.target.dialect)
    result.seconds = seconds
    return result


async def _client(
    http: aiohttp.ClientSession,
    job: Job,
    number: int,
    readings: list[tuple[Spec, Reading]],
) -> None:
    end = time.monotonic() + job.seconds
    if job.spec.pause:  # spread the starts, so that clients do not run in step
        spread = job.seconds / 5 + job.spec.pause
        await asyncio.sleep(spread * number / job.streams)
    while time.monotonic() < end:
        spec = replace(job.spec, stream=f"{next(_numbers):08x}")
        reading = await ask(http, job.target, spec)
        readings.append((spec, reading))
        if reading.failure or reading.status != 200:
            await asyncio.sleep(0.1)


def check_streams(readings: Sequence[tuple[Spec, Reading]], dialect: str) -> Result:
    """Check each stream against its spec."""
    result = Result(requests=len(readings))
    first: list[float] = []
    ways: list[float] = []
    for spec, reading in readings:
        try:
            answer = parse_answer(reading, dialect)
            ways += answer.check(spec)
        except Damaged as error:
            result.damaged += 1
            if len(result.reasons) < 5:
                result.reasons.append(str(error))
            continue
        result.chunks += spec.chunks + spec.calls * spec.fragments
        if answer.pieces:
            first.append(answer.pieces[0][0] - reading.asked)
    result.first, result.way = median_and_p99(first), median_and_p99(ways)
    return result


def main() -> None:
    """Read jobs until the input ends."""
    for line in sys.stdin:
        fields = json.loads(line)
        job = Job(
            Target(**fields["target"]),
            Spec(**fields["spec"]),
            fields["streams"],
            fields["seconds"],
        )
        print(json.dumps(asdict(run(job))), flush=True)


def run(job: Job) -> Result:
    """Run a job on uvloop if it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(run_job(job))
    return uvloop.run(run_job(job))


if __name__ == "__main__":
    main()
