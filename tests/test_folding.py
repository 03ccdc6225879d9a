"""Folded tables: every row runs, and each row that fails is named."""

import pytest

TABLE = """
import pytest

@pytest.fixture(scope="module")
def unit():
    return 1

@pytest.fixture
def own():
    return 1

@pytest.mark.parametrize("n", [*range(8), pytest.param(13, id="unlucky")])
def test_plain(n, unit):
    assert n * unit not in (3, 13)

@pytest.mark.parametrize("n", range(8))
async def test_async(n):
    assert n != 3

@pytest.mark.parametrize("a", [1, 2])
@pytest.mark.parametrize(("b", "c"), [(1, 2), (3, 4), (5, 6)], ids=["x", "y", "z"])
def test_product(a, b, c):
    assert (a, c) != (2, 4)

@pytest.mark.parametrize("n", range(8))
def test_exception(n):
    if n == 3:
        pytest.fail("by hand")
    if n == 5:
        raise ExceptionGroup("of its own", [ValueError()])

@pytest.mark.parametrize("n", range(8))
def test_skipped(n):
    if n == 3:
        pytest.skip("not here")

@pytest.mark.parametrize("n", range(8))
def test_skipped_and_failed(n):
    if n == 3:
        pytest.skip("not here")
    assert n != 5
"""
STAYS = """
import pytest

@pytest.fixture
def own():
    return []

@pytest.mark.parametrize("n", range(4))
def test_fixture_of_its_own(own, n):
    own.append(n)
    assert own == [n]

SKIPPED = [pytest.param(n, marks=pytest.mark.skip) for n in range(4)]

@pytest.mark.parametrize("n", SKIPPED)
def test_marks_of_rows(n):
    assert False

@pytest.mark.xfail
@pytest.mark.parametrize("n", range(4))
def test_expected_to_fail(n):
    assert n == 3

@pytest.mark.parametrize("own", range(4), indirect=True)
def test_indirect(own):
    assert own == []

@pytest.mark.parametrize("n", range(3))
def test_few_rows(n):
    pass
"""
HOMES = """
import os
from pathlib import Path
import pytest

seen = set()

@pytest.fixture
def before_row(monkeypatch):
    return lambda: monkeypatch.setenv("ROW", str(len(seen)))

@pytest.mark.parametrize("n", range(5))
def test_row_is_prepared(n):
    assert os.environ["ROW"] not in seen
    seen.add(os.environ["ROW"])
"""
SHARED = """
import pytest

MADE = []

class Fake:
    def __init__(self):
        MADE.append(self)

    def renew(self):
        self.requests = []

@pytest.fixture
def fake():
    return Fake()
"""
USES = """
import pytest

@pytest.mark.parametrize("n", range(5))
def test_row_has_it_to_itself(fake, n):
    assert fake.requests == []
    fake.requests.append(n)

def test_it_was_made_once_for_all_rows(fake):
    assert type(fake).__init__.__globals__["MADE"][1:] == [fake]
"""


def ran(pytester: pytest.Pytester, text: str, *options: str) -> pytest.RunResult:
    """Run these tests, as test_rows.py, with the plugin in this process."""
    pytester.makepyfile(test_rows=text)
    pytester.makeini("""
        [pytest]
        asyncio_mode = auto
        asyncio_default_fixture_loop_scope = function
    """)
    plugins = ("-p", "tests.folding", "-p", "no:cacheprovider", "-p", "no:anyio")
    return pytester.runpytest_inprocess(*plugins, "-ra", *options)


@pytest.mark.parametrize(
    ("test", "rows"),
    [
        ("test_plain", ["3", "unlucky"]),
        ("test_async", ["3"]),
        ("test_product", ["2-y"]),
        ("test_exception", ["3", "5"]),
        ("test_skipped_and_failed", ["5"]),
    ],
)
def test_a_folded_failure_names_every_row_that_failed(
    pytester: pytest.Pytester, test: str, rows: list[str]
) -> None:
    result = ran(pytester, TABLE, "-k", f"{test} and not {test}_")
    result.assert_outcomes(failed=1)
    for row in rows:
        result.stdout.fnmatch_lines([f"*row: {row}"])
    if len(rows) > 1:
        result.stdout.fnmatch_lines([f"*{len(rows)} of * rows failed: *{rows[-1]}*"])


def test_a_folded_failure_shows_what_was_compared(pytester: pytest.Pytester) -> None:
    result = ran(pytester, TABLE, "-k", "test_plain")
    result.stdout.fnmatch_lines(["*assert (3 * 1) not in (3, 13)", "*row: 3"])
    result.stdout.fnmatch_lines(["*assert (13 * 1) not in (3, 13)", "*row: unlucky"])


def test_a_folded_skip_is_told(pytester: pytest.Pytester) -> None:
    result = ran(pytester, TABLE, "-k", "test_skipped and not failed")
    result.stdout.fnmatch_lines(["SKIPPED*1 of 8 rows: 3: not here"])


def test_rows_run_alone_where_that_is_asked(pytester: pytest.Pytester) -> None:
    result = ran(pytester, TABLE, "--unfold", "-k", "test_plain")
    result.assert_outcomes(passed=7, failed=2)
    result.stdout.fnmatch_lines(["FAILED *test_plain[[]unlucky] - *"])


def test_a_row_runs_alone_where_it_is_named(pytester: pytest.Pytester) -> None:
    result = ran(pytester, TABLE, "test_rows.py::test_plain[unlucky]")
    result.assert_outcomes(failed=1)


def test_rows_that_need_more_than_values_stay_cases(pytester: pytest.Pytester) -> None:
    result = ran(pytester, STAYS)
    result.assert_outcomes(passed=4 + 4 + 3, skipped=4, xfailed=3, xpassed=1)


def test_each_row_is_prepared_like_a_test(pytester: pytest.Pytester) -> None:
    ran(pytester, HOMES).assert_outcomes(passed=1)


def test_rows_share_a_fake_upstream_that_is_renewed(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(SHARED)
    ran(pytester, USES).assert_outcomes(passed=2)
