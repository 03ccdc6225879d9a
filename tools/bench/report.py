"""Write the table of figures, also into docs/reference/performance.md."""

import math
import os
import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from statistics import median

from tools.bench.measure import DIRECT, Figures, Table
from tools.bench.processes import ROOT
from tools.bench.scenarios import Scenario

PAGE = ROOT / "docs" / "reference" / "performance.md"
BEGIN = "<!-- scripts/bench --write: begin -->"
END = "<!-- scripts/bench --write: end -->"
REFERENCE = "pass-through"
BEFORE = "before"  # the byok to compare with
_BYOK = "byok"
_MAX_RATIO = 1.05
_WORDS = {"cpu": "CPU time", "memory": "memory"}
_PACKAGES = ("aiohttp", "httpx", "httpx-aiohttp", "orjson", "uvloop")
_HEAD = (
    "scenario",
    "target",
    "first chunk, ms",
    "CPU ms / 1000 chunks",
    "× pass-through",
    "way of a chunk p50 / p99, ms",
    "RSS MiB",
    "streams",
    "damaged",
)


def lines(plan: Sequence[Scenario], table: Table) -> Iterator[str]:
    """Write the table in Markdown."""
    yield "| " + " | ".join(_HEAD) + " |"
    yield "|---|---|" + "--:|" * (len(_HEAD) - 2)
    for scenario in plan:
        row = table[scenario.name]
        for name, figures in row.items():
            cells = [scenario.name, name, *_cells(scenario, row, name, figures)]
            yield "| " + " | ".join(cells) + " |"


def _cells(
    scenario: Scenario, row: dict[str, Figures], name: str, own: Figures
) -> Iterator[str]:
    alone = row.get(DIRECT, Figures()) if name != DIRECT else Figures()
    if "first" in scenario.shown:
        yield _added(own.median("first"), alone.median("first"))
    else:
        yield ""
    cpu = own.median("cpu") if "cpu" in scenario.shown else math.nan
    yield _number(cpu)
    yield _number(cpu / row[REFERENCE].median("cpu"), ".2f")
    if "way" in scenario.shown:
        p50 = _added(own.median("p50"), alone.median("p50"))
        p99 = _added(own.median("p99"), alone.median("p99"))
        yield f"{p50} / {p99}"
    else:
        yield ""
    yield _number(own.median("memory"), ".0f")
    yield str(own.streams)
    yield str(own.damaged)


def compare(plan: Sequence[Scenario], table: Table) -> Iterator[str]:
    """Yield the scenarios in which byok takes more than the byok to compare with.

    The ratio is the median over the rounds. Figures that could not be measured, as on
    systems other than Linux, are reported as well.
    """
    for scenario in plan:
        row = table[scenario.name]
        for figure in ("cpu", "memory"):
            rounds = zip(
                getattr(row[_BYOK], figure), getattr(row[BEFORE], figure), strict=True
            )
            ratio = median([new / old for new, old in rounds])
            if not ratio <= _MAX_RATIO:  # also if it is NaN
                yield f"{scenario.name}: {ratio:.2f} x the {_WORDS[figure]} of before"


def _number(value: float, form: str = ".1f") -> str:
    return "" if math.isnan(value) else format(value, form)


def _added(own: float, direct: float) -> str:
    """Write a time; if the time of the mock alone is known, only the difference."""
    return _number(own, ".2f") if math.isnan(direct) else _number(own - direct, "+.2f")


def machine() -> str:
    """Describe the machine in general words."""
    cores = os.cpu_count() or 1
    packages = []
    for name in _PACKAGES:
        try:
            packages.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            packages.append(f"no {name}")
    python = f"Python {platform.python_version()}"
    return f"{cores} cores, {platform.system()}, {python}, {', '.join(packages)}"


def page_with(page: str, text: str) -> str:
    """Put the text between the markers of a page.

    Raises:
        ValueError: the page has no markers.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the page has lost its marker lines")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"
