"""Every case of tests/cases.toml has a test, and the page of them tells the truth."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.case_tests import TABLE, CasesError, CaseTest, joined
from scripts.security_page import written

TESTS = Path(__file__).parent
ROW = {"given": "a | b", "expected": "refused"}
HOLDS = CaseTest("tests/test_a.py", "test_it_holds")
FAILS = CaseTest("tests/test_a.py", "test_it_fails", gap="not yet")


def named(path: Path) -> Iterator[str]:
    """Give the cases that a file of tests names, however it names them."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Call(func=ast.Attribute(attr="case"), args=values):
                yield from (str(v.value) for v in values if isinstance(v, ast.Constant))
            case ast.Call(func=ast.Name(id="case_param"), keywords=keywords):
                [text] = [k.value for k in keywords if k.arg == "id"]
                first = text.values[0] if isinstance(text, ast.JoinedStr) else text
                assert isinstance(first, ast.Constant)
                yield str(first.value).partition("-")[0]
            case _:
                pass


@pytest.mark.slow
def test_every_case_has_a_test_and_every_test_a_case() -> None:
    files = sorted(TESTS.rglob("test_*.py"))
    tests = [(id, CaseTest(str(f), "")) for f in files for id in named(f)]
    assert len(joined(_table(), tests)) >= 90


def test_a_case_has_words_and_stands_in_order() -> None:
    rows = _table()
    assert list(rows) == sorted(rows, key=lambda id: (id[0], int(id[1:])))
    for row in rows.values():
        assert set(row) == {"given", "expected"}
        assert all(text and not text.endswith(".") for text in row.values())


def test_a_case_without_a_test_is_told() -> None:
    with pytest.raises(CasesError, match="no test shows: B02"):
        joined({"B01": ROW, "B02": ROW}, [("B01", HOLDS)])


def test_a_test_without_a_case_is_told() -> None:
    with pytest.raises(CasesError, match=r"test_it_holds in .*names no case: B99"):
        joined({"B01": ROW}, [("B01", HOLDS), ("B99", HOLDS)])


def test_the_page_counts_what_holds_and_names_every_gap() -> None:
    tests = [("B01", HOLDS), ("B01", HOLDS), ("F01", HOLDS), ("F01", FAILS)]
    text = written("# Head\n", joined({"B01": ROW, "F01": ROW}, tests))
    assert text.startswith("# Head\n\n")
    assert "1 of 2 cases pass, 1 known gap (F01: not yet)." in text
    assert (
        "| B01 | a \\| b | refused | [test_it_holds](../tests/test_a.py) ×2 |" in text
    )
    assert "| refused. **Known gap:** not yet | " in text


def _table() -> dict[str, dict[str, str]]:
    return tomllib.loads(TABLE.read_text("utf-8"))
