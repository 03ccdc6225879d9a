"""The table of codes: every code of the sources has a row, and no row is dead."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from byok.core import errors
from byok.core.error_table import GROUPS, ErrorRow, error_rows
from byok.core.errors import ByokError, RefusalKind
from byok.core.language import known_languages
from byok.settings import UpstreamSettings
from byok.upstream.turn import BrokenCalls

SOURCES = Path(errors.__file__).parent.parent
CLASSES = {
    name: kind
    for name, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, ByokError)
}
# Files that give an error a code which another error had before.
PASSED_ON = {
    "protocols/augment/text_reply.py",
    "protocols/v1/block_reply.py",
    "cli/daemon_client.py",
    "server/dashboard/journal_api.py",
}
DRAWN = {
    *(kind.code for kind in CLASSES.values()),
    *(kind.value for kind in RefusalKind),
    BrokenCalls.code,
}


def codes_of(tree: ast.Module) -> Iterator[str | None]:
    """Give the codes with which a module makes errors; None for one not written out."""
    constants = {**vars(errors), **dict(_constants(tree))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _makes_error(node.func):
            for keyword in node.keywords:
                if keyword.arg == "code":
                    yield _written(keyword.value, constants)


def _constants(tree: ast.Module) -> Iterator[tuple[str, object]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            yield ast.unparse(node.targets[0]), node.value.value


def _makes_error(function: ast.expr) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id in CLASSES for node in ast.walk(function)
    ) or (isinstance(function, ast.Call) and _makes_error(function.func))


def _written(value: ast.expr, constants: dict[str, object]) -> str | None:
    if isinstance(value, ast.Constant):
        return str(value.value)
    found = constants.get(ast.unparse(value))
    return found if isinstance(found, str) else None


@pytest.fixture(scope="module")
def used() -> dict[str, set[str | None]]:
    """The codes of each file below byok/."""
    return {
        path.relative_to(SOURCES).as_posix(): {*codes_of(ast.parse(text))}
        for path in sorted(SOURCES.rglob("*.py"))
        if "code=" in (text := path.read_text("utf-8"))
    }


@pytest.mark.slow
def test_every_code_has_a_row_and_no_row_is_dead(
    used: dict[str, set[str | None]],
) -> None:
    codes = {code for found in used.values() for code in found if code is not None}
    assert len(codes) > 50
    assert sorted(codes | DRAWN) == sorted(error_rows())


@pytest.mark.slow
def test_every_code_is_written_out_where_an_error_is_made(
    used: dict[str, set[str | None]],
) -> None:
    assert {name for name, found in used.items() if None in found} == PASSED_ON


@pytest.mark.parametrize("row", error_rows().values(), ids=lambda row: row.code)
def test_a_row_says_what_happened_why_and_what_to_do(row: ErrorRow) -> None:
    assert row.group in GROUPS
    assert row.causes
    assert row.cures
    assert row.what.endswith(".")
    for sentence in (row.what, *row.cures):
        assert re.match(r"[A-Z`/]|byok|macOS", sentence), sentence
        assert sentence[-1] == ".", sentence
    for phrase in row.causes:
        assert not phrase.endswith("."), phrase


@pytest.mark.parametrize("language", known_languages())
def test_a_setting_of_an_upstream_is_said_in_words_before_its_name(
    language: str,
) -> None:
    names = "|".join(UpstreamSettings.model_fields)
    rows = error_rows(language).values()
    texts = [text for row in rows for text in (row.what, *row.causes, *row.cures)]
    named = [text for text in texts if re.search(rf"`({names})`", text)]
    assert len(named) > 10
    for text in named:
        assert not re.search(rf"`({names})`", re.sub(r"[(（].*?[)）]", "", text)), text
