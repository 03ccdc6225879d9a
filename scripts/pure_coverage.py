"""Measure how much of the pure rooms their unit tests reach: lines and branches.

The pure rooms are those of the import contract "Protocol rooms perform no I/O": all
that reaches a branch there is an argument. Tests of properties are left out, because
what their random inputs reach differs from run to run.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coverage import Coverage

from byok.wire.json_body import parse_json

ROOT = Path(__file__).parent.parent
CONTRACT = "Protocol rooms perform no I/O"
LEAST = 97.0  # percent of the lines, and of the branches, of each room


@dataclass(frozen=True, slots=True)
class Share:
    """How many lines or branches there are, and how many were reached."""

    reached: int
    all: int

    @property
    def percent(self) -> float:
        """The share in percent; 100 of nothing."""
        return 100 * self.reached / self.all if self.all else 100.0


@dataclass(frozen=True, slots=True)
class RoomCoverage:
    """What the tests reach of one room."""

    room: str
    lines: Share
    branches: Share

    @property
    def is_enough(self) -> bool:
        """Whether lines and branches are both reached."""
        return min(self.lines.percent, self.branches.percent) >= LEAST

    def __str__(self) -> str:
        shares = (self.lines, self.branches)
        figures = [f"{s.reached:5}/{s.all:<5} {s.percent:5.1f} %" for s in shares]
        return f"{self.room:24} lines {figures[0]}   branches {figures[1]}"


def pure_rooms(project: Mapping[str, Any]) -> list[str]:
    """Return the modules of the contract in pyproject.toml."""
    contracts = project["tool"]["importlinter"]["contracts"]
    (rooms,) = [c["source_modules"] for c in contracts if c["name"] == CONTRACT]
    return list(rooms)


def unit_tests(room: str) -> list[Path]:
    """Return the tests of a room: the folder or the file that mirrors it, if any."""
    path = ROOT.joinpath("tests", *room.split(".")[1:])
    return [p for p in (path, path.with_name(f"test_{path.name}.py")) if p.exists()]


def run_tests(rooms: Iterable[str], data: Path) -> bool:
    """Run the unit tests of the rooms on all cores; print their output if one fails."""
    command = [
        *(sys.executable, "-m", "pytest", "-q", "--no-header"),
        *("-m", "not slow and not hypothesis"),
        *("-n", str(os.cpu_count() or 1), "--dist", "worksteal"),
        *("--cov-branch", "--cov-report="),
        *(f"--cov={room}" for room in rooms),
        *(str(path) for room in rooms for path in unit_tests(room)),
    ]
    env = {**os.environ, "COVERAGE_FILE": str(data)}
    ran = subprocess.run(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, check=False
    )
    if ran.returncode:
        sys.stdout.buffer.write(ran.stdout)
    return not ran.returncode


def read_summaries(coverage: Coverage, folder: Path) -> dict[str, dict[str, int]]:
    """Return coverage's own figures of each file, by its path from the root."""
    report = folder / "coverage.json"
    coverage.json_report(outfile=str(report))
    files = parse_json(report.read_bytes())["files"]
    return {path.replace("\\", "/"): row["summary"] for path, row in files.items()}


def room_coverage(
    room: str, summaries: Mapping[str, Mapping[str, int]]
) -> RoomCoverage:
    """Sum up the files of a room."""
    path = room.replace(".", "/")
    rows = [
        row
        for name, row in summaries.items()
        if name == f"{path}.py" or name.startswith(f"{path}/")
    ]

    def total(field: str) -> int:
        return sum(row[field] for row in rows)

    return RoomCoverage(
        room,
        Share(total("covered_lines"), total("num_statements")),
        Share(total("covered_branches"), total("num_branches")),
    )


def main() -> int:
    """Run the tests, print a line a room, and say where the tests reach too little."""
    rooms = pure_rooms(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8")))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(ROOT):
        data = Path(folder) / "data"
        if not run_tests(rooms, data):
            return 1
        coverage = Coverage(data_file=str(data), messages=False)
        coverage.load()
        summaries = read_summaries(coverage, Path(folder))
        results = [room_coverage(room, summaries) for room in rooms]
        print("\n".join(map(str, results)))
        low = [result.room for result in results if not result.is_enough]
        if low:
            print(f"below {LEAST:.0f} %: {', '.join(low)}; not reached:")
        if low or "--missing" in sys.argv:
            coverage.report(show_missing=True, skip_covered=True)
    return int(bool(low))


if __name__ == "__main__":
    sys.exit(main())
