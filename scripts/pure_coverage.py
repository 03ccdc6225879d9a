"""Measure the coverage of the pure rooms by their unit tests: lines and branches.

The pure rooms are those of the import contract "Protocol rooms perform no I/O": every
branch there can be reached by arguments alone. Property tests are left out, because the
coverage of their random inputs differs from run to run.

As a plugin of pytest (`-p scripts.pure_coverage --pure-coverage=FOLDER`) this traces
only the tests of these rooms while all tests run; as a program
(`python -m scripts.pure_coverage FOLDER`) it then reports the coverage.
"""

import importlib
import os
import pkgutil
import sys
import tomllib
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage

ROOT = Path(__file__).parent.parent
CONTRACT = "Protocol rooms perform no I/O"
LEAST = 97.0  # percent of the lines, and of the branches, of each room


@dataclass(frozen=True, slots=True)
class Share:
    """The number of lines or branches, and how many of them were reached."""

    reached: int
    all: int

    @property
    def percent(self) -> float:
        """The share in percent; 100 if there are none."""
        return 100 * self.reached / self.all if self.all else 100.0


@dataclass(frozen=True, slots=True)
class RoomCoverage:
    """The coverage of one room."""

    room: str
    lines: Share
    branches: Share

    @property
    def is_enough(self) -> bool:
        """Whether lines and branches both reach the required share."""
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


def read_pure_rooms() -> list[str]:
    """Return the modules of this project's contract."""
    return pure_rooms(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8")))


def unit_tests(room: str) -> list[Path]:
    """Return the tests of a room: those of its name, else the folder of its parent."""
    path = ROOT.joinpath("tests", *room.split(".")[1:])
    own = [p for p in (path, path.with_name(f"test_{path.name}.py")) if p.exists()]
    return own or [path.parent] * (path.parent.name != "tests")


def new_coverage(rooms: list[str], folder: Path) -> Coverage:
    """Return a Coverage of the rooms that writes its data into a folder."""
    paths = [ROOT / room.replace(".", "/") for room in rooms]
    return Coverage(
        data_file=str(folder / "data"),
        data_suffix=True,
        include=[pattern for path in paths for pattern in (f"{path}.py", f"{path}/*")],
        messages=False,
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the folder with the data of all processes."""
    parser.addoption("--pure-coverage", metavar="FOLDER", required=True)


def pytest_configure(config: pytest.Config) -> None:
    """Register the tracer in the processes that run tests."""
    if not config.getoption("numprocesses", None) or hasattr(config, "workerinput"):
        folder = Path(config.getoption("pure_coverage"))
        config.pluginmanager.register(Tracer(read_pure_rooms(), folder))


class Tracer:
    """Traces only the unit tests of the pure rooms."""

    def __init__(self, rooms: list[str], folder: Path) -> None:
        self._coverage = new_coverage(rooms, folder)
        self._tests = tuple(path for room in rooms for path in unit_tests(room))
        self._is_tracing = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item
    ) -> Generator[None, object, object]:
        """Start or stop tracing before a test, as the test needs it."""
        self._set_tracing(self._is_measured(item))
        return (yield)

    def pytest_sessionfinish(self) -> None:
        """Save the coverage of this process."""
        self._set_tracing(False)
        self._coverage.save()

    def _is_measured(self, item: pytest.Item) -> bool:
        if item.get_closest_marker("hypothesis"):
            return False
        return any(item.path.is_relative_to(path) for path in self._tests)

    def _set_tracing(self, on: bool) -> None:
        if on != self._is_tracing:
            self._is_tracing = on
            (self._coverage.start if on else self._coverage.stop)()


def import_traced(rooms: list[str], coverage: Coverage) -> None:
    """Trace the imports of the rooms, which happened before the tests were traced."""
    with coverage.collect():
        for room in rooms:
            module = importlib.import_module(room)
            for submodule in pkgutil.walk_packages(
                getattr(module, "__path__", ()), f"{room}."
            ):
                importlib.import_module(submodule.name)


def read_summaries(coverage: Coverage, folder: Path) -> dict[str, dict[str, int]]:
    """Return coverage's own figures of each file, by its path from the root."""
    from byok.core.wire.json_body import parse_json  # late: its import is traced

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
    """Print a line for each room, and report rooms below the required share."""
    folder, rooms = Path(sys.argv[1]), read_pure_rooms()
    coverage = new_coverage(rooms, folder)
    import_traced(rooms, coverage)
    coverage.combine([str(folder)])
    summaries = read_summaries(coverage, folder)
    results = [room_coverage(room, summaries) for room in rooms]
    print("\n".join(map(str, results)))
    low = [result.room for result in results if not result.is_enough]
    if low:
        print(f"below {LEAST:.0f} %: {', '.join(low)}; not reached:")
    if low or "--missing" in sys.argv:
        coverage.report(show_missing=True, skip_covered=True)
    return int(bool(low))


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
