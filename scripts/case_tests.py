"""Read the cases of tests/cases.toml, and find the tests that show each of them."""

import ast
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "tests" / "cases.toml"
_MARKERS = ("mark.case(", "case_param(")  # in files that have tests of cases


class CasesError(Exception):
    """A case has no test, or a test names an unknown case."""


@dataclass(frozen=True, slots=True)
class CaseTest:
    """A test of a case; `gap` is the reason why it is expected to fail, or ""."""

    file: str
    name: str
    gap: str = ""


@dataclass(slots=True)
class Case:
    """A situation (`given`), the expected behaviour, and the tests that show it."""

    id: str
    given: str
    expected: str
    tests: list[CaseTest] = field(default_factory=list)

    @property
    def gaps(self) -> list[str]:
        """The reasons why parts of the case do not hold yet."""
        return list(dict.fromkeys(test.gap for test in self.tests if test.gap))


def all_cases() -> list[Case]:
    """Return every case with its tests.

    Raises:
        CasesError: a case has no test, or a test names no case.
    """
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return join_cases(rows, collect_tests())


def join_cases(
    rows: Mapping[str, Mapping[str, str]], tests: Iterable[tuple[str, CaseTest]]
) -> list[Case]:
    """Return the cases of the table, with their tests.

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
    if untested := [case.id for case in cases.values() if not case.tests]:
        raise CasesError(f"no test shows: {', '.join(untested)}")
    return list(cases.values())


def collect_tests() -> list[tuple[str, CaseTest]]:
    """Return the tests of cases, each with the id of its case."""
    tests: list[tuple[str, CaseTest]] = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if any(marker in text for marker in _MARKERS):
            tests += read_tests(path.relative_to(ROOT).as_posix(), text)
    return tests


def read_tests(file: str, text: str) -> Iterator[tuple[str, CaseTest]]:
    """Yield each test of a file with the ids of its cases.

    They are named by its decorators, by a table of parameters, or for the whole file.
    """
    tree = ast.parse(text)
    tables: dict[str, dict[str, str]] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                tables[name] = _read_cases([value], tables)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                tables[name] = _read_cases([value], tables)
            case _:
                pass
    of_file = tables.get("pytestmark", {})
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if node.name.startswith("test"):
                    cases = _read_cases(node.decorator_list, tables) | of_file
                    for id, gap in cases.items():
                        yield id, CaseTest(file, node.name, gap)
            case _:
                pass


def _read_cases(
    expressions: Iterable[ast.expr], tables: Mapping[str, dict[str, str]]
) -> dict[str, str]:
    """Return the cases that expressions name, with their gaps."""
    gaps: dict[str, str] = {}
    for expression in expressions:
        for node in ast.walk(expression):
            match node:
                case ast.Call(func=ast.Attribute(attr="case"), args=values):
                    ids = [str(v.value) for v in values if isinstance(v, ast.Constant)]
                    gaps |= dict.fromkeys(ids, _read_gap(expressions))
                case ast.Call(func=ast.Name(id="case_param"), keywords=keywords):
                    [id] = [k.value for k in keywords if k.arg == "id"]
                    name = ast.literal_eval(_first_part(id)).partition("-")[0]
                    gaps[name] = gaps.get(name) or _read_gap([node])
                case ast.Name(id=name):
                    gaps |= tables.get(name, {})
                case _:
                    pass
    return gaps


def _first_part(text: ast.expr) -> ast.expr:
    return text.values[0] if isinstance(text, ast.JoinedStr) else text


def _read_gap(expressions: Iterable[ast.expr]) -> str:
    for expression in expressions:
        for node in ast.walk(expression):
            match node:
                case ast.Call(func=ast.Attribute(attr="xfail"), keywords=[reason]):
                    return str(ast.literal_eval(reason.value))
                case _:
                    pass
    return ""
