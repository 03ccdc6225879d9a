"""Tables of a test run as one case each: their rows cost no case, and none is hidden.

A test function with many rows, whose rows share all fixtures, becomes one case. It runs
every row, in a home of its own, and its failure names each row that failed. `--unfold`
makes a case of each row again, and so does naming one on the command line.
"""

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

# From this number of rows on a table is folded.
FEWEST = 4
# Fixtures of single tests that a folded case may need, because it renews what they do.
_RENEWED = {"before_row", "clean_environment", "monkeypatch"}
# Fixtures of single tests that the rows share: what is called on each before a row.
_SHARED = {"caplog": "clear", "editor": "", "fake": "renew"}
_SHOWN = 60  # characters of a row without a name


@dataclass(frozen=True, slots=True)
class Row:
    """The values of one row, and what it is called in a failure."""

    name: str
    values: Mapping[str, Any]


@dataclass(slots=True)
class RowResults:
    """What became of the rows of one case."""

    rows: int
    errors: list[BaseException] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    @contextmanager
    def collected(self, row: Row) -> Iterator[None]:
        """Keep the failure of a row until all rows have run."""
        try:
            yield
        except pytest.skip.Exception as skip:
            self.skipped.append(f"{row.name}: {skip.msg}")
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(f"row: {row.name}")
            self.errors.append(error)
            self.failed.append(row.name)

    def raise_failures(self) -> None:
        """Fail with the failures of all rows, else say which rows were skipped."""
        if len(self.errors) == 1:
            raise self.errors[0]
        if self.errors:
            names = ", ".join(self.failed)
            raise BaseExceptionGroup(
                f"{len(self.failed)} of {self.rows} rows failed: {names}", self.errors
            )
        if self.skipped:
            pytest.skip(f"{len(self.skipped)} of {self.rows} rows: {self.skipped[0]}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run make a case of each row."""
    parser.addoption("--unfold", action="store_true", help="run each row as a case")


@pytest.fixture
def before_row() -> Callable[[], None]:
    """What is done before each row of a folded case: nothing, unless a suite says."""
    return lambda: None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> pytest.Function | None:
    """Make one case of a table; what cannot be folded is left to pytest."""
    if not isinstance(collector, pytest.Module) or not inspect.isfunction(obj):
        return None
    if not name.startswith("test") or _is_unfolded(collector.config):
        return None
    rows = read_rows(getattr(obj, "pytestmark", []))
    if len(rows) < FEWEST or hasattr(obj, "hypothesis"):
        return None
    folded = fold(obj, rows)
    case = pytest.Function.from_parent(collector, name=name, callobj=folded)
    return case if _shares_fixtures(case, obj, rows[0]) else None


def _is_unfolded(config: pytest.Config) -> bool:
    return config.getoption("unfold") or any("[" in name for name in config.args)


def _shares_fixtures(case: pytest.Function, test: Callable[..., Any], row: Row) -> bool:
    """Tell whether no fixture of the case is made for a single test."""
    own = {*inspect.signature(test).parameters} - {*row.values}
    return all(
        definitions[-1].scope != "function"
        or (name in _RENEWED and name not in own)
        or (name in _SHARED and not definitions[-1].baseid.endswith(".py"))
        for name, definitions in case._fixtureinfo.name2fixturedefs.items()
    )


def read_rows(marks: Iterable[pytest.Mark]) -> list[Row]:
    """Return the rows of a function with these marks; none if they are no plain table.

    A row with marks but `case`, or for a fixture, must stay a case; so must each row of
    a test that is expected to fail, because one failure would hide what passes.
    """
    tables: list[list[Row]] = []
    for mark in marks:
        if mark.name == "xfail":
            return []
        if mark.name == "parametrize":
            table = _table(*mark.args, **mark.kwargs)
            if not table:
                return []
            tables.append(table)
    return [
        Row(
            "-".join(row.name for row in rows),
            {name: value for row in rows for name, value in row.values.items()},
        )
        for rows in itertools.product(*reversed(tables))
        if rows
    ]


def _table(
    argnames: str | Sequence[str],
    argvalues: Iterable[Any],
    indirect: object = False,
    ids: Iterable[object] | Callable[[Any], object] | None = None,
    scope: object = None,
) -> list[Row]:
    if indirect or scope:
        return []
    names = argnames.split(",") if isinstance(argnames, str) else argnames
    names = [name.strip() for name in names if name.strip()]
    given = list(ids) if isinstance(ids, Iterable) else []
    rows = []
    for number, value in enumerate(argvalues):
        alone = isinstance(argnames, str) and len(names) == 1
        param = pytest.param(value) if alone else pytest.param(*value)
        if isinstance(value, type(param)):
            param = value
        marks = [mark for mark in param.marks if mark.name != "case"]
        if marks or len(param.values) != len(names):
            return []
        name = param.id or (given[number] if given else None)
        label = str(name) if name else _label(param.values, ids)
        rows.append(Row(label, dict(zip(names, param.values, strict=True))))
    return rows


def _label(values: Sequence[object], ids: object) -> str:
    chosen = [ids(value) for value in values] if callable(ids) else [None] * len(values)
    texts = [
        str(name) if name is not None else repr(value)
        for name, value in zip(chosen, values, strict=True)
    ]
    text = "-".join(texts)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _prepare(before_row: Callable[[], None], fixtures: Mapping[str, Any]) -> None:
    """Take away what the row before left; a daemon that rows share keeps its home."""
    if "editor" not in fixtures:
        before_row()
    for name, method in _SHARED.items():
        if method and name in fixtures:
            getattr(fixtures[name], method)()


def fold(test: Callable[..., Any], rows: Sequence[Row]) -> Any:
    """Return a test that runs the rows one after the other, with the same fixtures."""

    async def run_async(before_row: Callable[[], None], **fixtures: Any) -> None:
        results = RowResults(len(rows))
        for row in rows:
            with results.collected(row):
                _prepare(before_row, fixtures)
                await test(**row.values, **fixtures)
        results.raise_failures()

    def run(before_row: Callable[[], None], **fixtures: Any) -> None:
        results = RowResults(len(rows))
        for row in rows:
            with results.collected(row):
                _prepare(before_row, fixtures)
                test(**row.values, **fixtures)
        results.raise_failures()

    chosen: Any = run_async if inspect.iscoroutinefunction(test) else run
    folded: Any = functools.wraps(test)(chosen)
    kept = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(test).parameters.items()
        if name not in rows[0].values
    ]
    first = inspect.Parameter("before_row", inspect.Parameter.KEYWORD_ONLY)
    folded.__signature__ = inspect.Signature([first, *kept])
    marks = getattr(test, "pytestmark", [])
    folded.pytestmark = [mark for mark in marks if mark.name != "parametrize"]
    return folded
