"""Run the scenarios in interleaved rounds, and collect the figures of each target."""

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from tools.bench.client import Target
from tools.bench.processes import ROOT, cpu_seconds, forget_peak, memory_mib
from tools.bench.scenarios import Scenario

DIRECT = "direct"
_PAUSE_SECONDS = 0.2


@dataclass
class Figures:
    """The figures of one target in one scenario, with one value for each round."""

    first: list[float] = field(default_factory=list)
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)  # ms per 1000 chunks
    rate: list[float] = field(default_factory=list)  # chunks a second
    memory: list[float] = field(default_factory=list)
    streams: int = 0
    damaged: int = 0
    reasons: list[str] = field(default_factory=list)

    def median(self, name: str) -> float:
        """Return the median of a column; NaN if it was not measured."""
        values = [v for v in getattr(self, name) if not math.isnan(v)]
        return median(values) if values else math.nan


Table = dict[str, dict[str, Figures]]  # scenario -> target -> figures


class Generator:
    """The load generator process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def run(self, scenario: Scenario, target: Target, seconds: float) -> dict[str, Any]:
        """Run one job and return its result."""
        job = {
            "target": asdict(target),
            "spec": asdict(scenario.spec),
            "streams": scenario.streams,
            "seconds": _job_seconds(scenario, seconds),
        }
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(job), file=self._process.stdin, flush=True)
        result: dict[str, Any] = json.loads(self._process.stdout.readline())
        return result


def _job_seconds(scenario: Scenario, seconds: float) -> float:
    """Return how long clients start new streams; long streams are started only once."""
    duration = scenario.spec.pause * scenario.spec.chunks / scenario.spec.per_write
    return 0.9 * seconds if duration >= 0.9 * seconds else seconds


@contextmanager
def generator() -> Iterator[Generator]:
    """Start the load generator."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tools.bench.generator"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        cwd=ROOT,
    )
    try:
        yield Generator(process)
    finally:
        process.communicate()


def measure_all(
    plan: Sequence[Scenario],
    targets: Sequence[Target],
    load: Generator,
    *,
    seconds: float,
    rounds: int,
    tell: Callable[[str], None],
) -> Table:
    """Measure every target in every scenario, in another order each round.

    The order is A B C, C B A, B C A, A C B, ..., as the cost of a run depends on the
    run before it.
    """
    table: Table = {}
    for scenario in plan:
        measured = [t for t in targets if t.name != DIRECT or scenario.direct]
        row = table[scenario.name] = {target.name: Figures() for target in measured}
        for turn in range(rounds):
            for target in _order(measured, turn):
                _measure(scenario, target, load, seconds, row[target.name])
                time.sleep(_PAUSE_SECONDS)
            tell(f"{scenario.name}: round {turn + 1} of {rounds}")
    return table


def _order(targets: Sequence[Target], turn: int) -> list[Target]:
    first = turn // 2 % len(targets)
    order = [*targets[first:], *targets[:first]]
    return order[::-1] if turn % 2 else order


def _measure(
    scenario: Scenario, target: Target, load: Generator, seconds: float, row: Figures
) -> None:
    forget_peak(target.pid)
    start = cpu_seconds(target.pid)
    result = load.run(scenario, target, seconds)
    cpu = cpu_seconds(target.pid) - start
    chunks = result["chunks"]
    row.cpu.append(1e6 * cpu / chunks if chunks else math.nan)
    row.rate.append(chunks / result["seconds"])
    row.memory.append(memory_mib(target.pid, "VmHWM"))
    row.streams += result["requests"]
    row.damaged += result["damaged"]
    row.reasons += result["reasons"]
    if result["first"]:
        row.first.append(result["first"][0])
    if result["way"]:
        row.p50.append(result["way"][0])
        row.p99.append(result["way"][1])
