"""The cases of tests/cases.toml and the tests that show them, as pytest finds both."""

import contextlib
import io
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "tests" / "cases.toml"
_SIGNS = ("mark.case(", "case_param(")
_COLLECT = (
    *("--collect-only", "-q", "--assert=plain"),
    *("-p", "no:cacheprovider", "-p", "pytest_asyncio.plugin"),
)


class CasesError(Exception):
    """The table and the tests do not fit together."""


@dataclass(frozen=True, slots=True)
class CaseTest:
    """One test of one case; `gap` says why it is expected to fail."""

    file: str
    name: str
    gap: str = ""


@dataclass(slots=True)
class Case:
    """What is given, what is expected, and the tests of that."""

    id: str
    given: str
    expected: str
    tests: list[CaseTest] = field(default_factory=list)

    @property
    def gaps(self) -> list[str]:
        """Why parts of the case do not hold yet."""
        return list(dict.fromkeys(test.gap for test in self.tests if test.gap))


def all_cases() -> list[Case]:
    """Return every case with its tests.

    Raises:
        CasesError: a case has no test, or a test names no case.
    """
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return joined(rows, collected())


def joined(
    rows: Mapping[str, Mapping[str, str]], tests: Iterable[tuple[str, CaseTest]]
) -> list[Case]:
    """Put tests to their cases.

    Raises:
        CasesError: a case has no test, or a test names no case.
    """
    cases = {
        name: Case(name, row["given"], row["expected"]) for name, row in rows.items()
    }
    for name, test in tests:
        if name not in cases:
            raise CasesError(f"{test.name} in {test.file} names no case: {name}")
        cases[name].tests.append(test)
    if bare := [case.id for case in cases.values() if not case.tests]:
        raise CasesError(f"no test shows: {', '.join(bare)}")
    return list(cases.values())


def collected() -> list[tuple[str, CaseTest]]:
    """Let pytest collect the files that hold tests of cases.

    Raises:
        CasesError: they cannot be collected.
    """
    files = sorted(
        path
        for path in (ROOT / "tests").rglob("test_*.py")
        if any(sign in path.read_text(encoding="utf-8") for sign in _SIGNS)
    )
    collector, printed = _Collector(), io.StringIO()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # only what collecting needs
    with contextlib.redirect_stdout(printed), contextlib.chdir(ROOT):
        code = pytest.main([*_COLLECT, *map(str, files)], plugins=[collector])
    if code:
        raise CasesError(f"pytest collects nothing:\n{printed.getvalue()}")
    return collector.found


class _Collector:
    def __init__(self) -> None:
        self.found: list[tuple[str, CaseTest]] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            xfail = item.get_closest_marker("xfail")
            gap = xfail.kwargs.get("reason", "no reason given") if xfail else ""
            file = item.path.relative_to(ROOT).as_posix()
            name = getattr(item, "originalname", item.name)
            for mark in item.iter_markers("case"):
                for case in mark.args:
                    self.found.append((case, CaseTest(file, name, gap)))
