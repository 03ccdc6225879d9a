"""The cases of tests/cases.toml, and the tests that show them, read from the source."""

import ast
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "tests" / "cases.toml"
_SIGNS = ("mark.case(", "case_param(")


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
    """Read the files that hold tests of cases."""
    found: list[tuple[str, CaseTest]] = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if any(sign in text for sign in _SIGNS):
            found += read_tests(path.relative_to(ROOT).as_posix(), text)
    return found


def read_tests(file: str, text: str) -> Iterator[tuple[str, CaseTest]]:
    """Give each test of a file with its cases: its own, its table's, its file's."""
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
    whole = tables.get("pytestmark", {})
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if node.name.startswith("test"):
                    cases = _read_cases(node.decorator_list, tables) | whole
                    for id, gap in cases.items():
                        yield id, CaseTest(file, node.name, gap)
            case _:
                pass


def _read_cases(
    expressions: Iterable[ast.expr], tables: Mapping[str, dict[str, str]]
) -> dict[str, str]:
    """Return the cases that expressions name, with why they do not hold yet."""
    found: dict[str, str] = {}
    for expression in expressions:
        for node in ast.walk(expression):
            match node:
                case ast.Call(func=ast.Attribute(attr="case"), args=values):
                    ids = [str(v.value) for v in values if isinstance(v, ast.Constant)]
                    found |= dict.fromkeys(ids, _read_gap(expressions))
                case ast.Call(func=ast.Name(id="case_param"), keywords=keywords):
                    [id] = [k.value for k in keywords if k.arg == "id"]
                    name = ast.literal_eval(_first_part(id)).partition("-")[0]
                    found[name] = found.get(name) or _read_gap([node])
                case ast.Name(id=name):
                    found |= tables.get(name, {})
                case _:
                    pass
    return found


def _first_part(text: ast.expr) -> ast.expr:
    return text.values[0] if isinstance(text, ast.JoinedStr) else text


def _read_gap(expressions: Iterable[ast.expr]) -> str:
    for expression in expressions:
        for node in ast.walk(expression):
            match node:
                case ast.Call(func=ast.Attribute(attr="xfail"), keywords=[given]):
                    return str(ast.literal_eval(given.value))
                case _:
                    pass
    return ""
