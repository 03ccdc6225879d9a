"""Every case of tests/cases.toml has a test, and the page of them tells the truth."""

import tomllib

import pytest

from scripts.case_tests import (
    TABLE,
    CasesError,
    CaseTest,
    all_cases,
    join_cases,
    read_tests,
)
from scripts.security_page import write_page

ROW = {"given": "a | b", "expected": "refused"}
HOLDS = CaseTest("tests/test_a.py", "test_it_holds")
FAILS = CaseTest("tests/test_a.py", "test_it_fails", gap="not yet")


SOURCE = """
import pytest
from tests.fakes.cases import case_param

pytestmark = pytest.mark.case("B01")
TABLE = [
    case_param(1, id="B02-first"),
    case_param(2, id="B03", marks=(pytest.mark.xfail(reason="not yet"),)),
    *(case_param(n, id=f"B04-{n}") for n in range(3)),
]

@pytest.mark.case("F01", "F02")
def test_one() -> None: ...

@pytest.mark.parametrize("n", TABLE)
async def test_table(n: int) -> None: ...

@pytest.mark.parametrize("n", [case_param(1, id="B05")])
@pytest.mark.xfail(reason="never")
@pytest.mark.case("B06")
def test_gap(n: int) -> None: ...

def helper() -> None: ...
"""


def test_the_cases_of_a_test_are_its_own_its_rows_and_its_files() -> None:
    found = [(id, t.name, t.gap) for id, t in read_tests("test_a.py", SOURCE)]
    assert sorted(found) == [
        ("B01", "test_gap", ""),
        ("B01", "test_one", ""),
        ("B01", "test_table", ""),
        ("B02", "test_table", ""),
        ("B03", "test_table", "not yet"),
        ("B04", "test_table", ""),
        ("B05", "test_gap", ""),
        ("B06", "test_gap", "never"),
        ("F01", "test_one", ""),
        ("F02", "test_one", ""),
    ]


@pytest.mark.slow
def test_every_case_has_a_test_and_every_test_a_case() -> None:
    assert len(all_cases()) >= 90


def test_a_case_has_words_and_stands_in_order() -> None:
    rows = _table()
    assert list(rows) == sorted(rows, key=lambda id: (id[0], int(id[1:])))
    for row in rows.values():
        assert set(row) == {"given", "expected"}
        assert all(text and not text.endswith(".") for text in row.values())


def test_a_case_without_a_test_is_told() -> None:
    with pytest.raises(CasesError, match="no test shows: B02"):
        join_cases({"B01": ROW, "B02": ROW}, [("B01", HOLDS)])


def test_a_test_without_a_case_is_told() -> None:
    with pytest.raises(CasesError, match=r"test_it_holds in .*names no case: B99"):
        join_cases({"B01": ROW}, [("B01", HOLDS), ("B99", HOLDS)])


def test_the_page_counts_what_holds_and_names_every_gap() -> None:
    tests = [("B01", HOLDS), ("B01", HOLDS), ("F01", HOLDS), ("F01", FAILS)]
    text = write_page("# Head\n", join_cases({"B01": ROW, "F01": ROW}, tests))
    assert text.startswith("# Head\n\n")
    assert "1 of 2 cases pass, 1 known gap (F01: not yet)." in text
    assert (
        "| B01 | a \\| b | refused | [test_it_holds](../../tests/test_a.py) |" in text
    )
    assert "| refused. **Known gap:** not yet | " in text


def _table() -> dict[str, dict[str, str]]:
    return tomllib.loads(TABLE.read_text("utf-8"))
