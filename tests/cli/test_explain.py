"""byok explain."""

import pytest

from byok.core.error_table import error_rows
from tests.fakes.commands import Cli


def test_a_code_is_explained_with_causes_and_cures(cli: Cli) -> None:
    done = cli("explain", "upstream_auth")
    row = error_rows()["upstream_auth"]
    first, *lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert first == f"upstream_auth: {row.what}"
    assert [line[4:] for line in lines if line.startswith("  - ")] == [
        *row.causes,
        *row.cures,
    ]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("upstream_aut", "Did you mean upstream_auth? All: byok explain"),
        ("\x1b[2J", "\\x1b[2J"),
        ("x" * 100_000, "x" * 100),
    ],
    ids=["near", "control characters", "long"],
)
def test_an_unknown_code_is_refused(cli: Cli, code: str, told: str) -> None:
    done = cli("explain", code)
    assert (done.code, done.out) == (1, "")
    assert told in done.err
    assert "\x1b" not in done.err
    assert len(done.err) < 1000
