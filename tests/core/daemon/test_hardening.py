"""Limits of the process; tried in processes of their own."""

import subprocess
import sys

import pytest

from tests.fakes.patience import START

resource = pytest.importorskip("resource", reason="this system has no such limits")


def run(code: str) -> "subprocess.CompletedProcess[str]":
    lines = ["import resource", "from byok.core.daemon.sockets import *", code]
    return subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        timeout=START,
        check=False,
    )


def room(soft: int, hard: int, wanted: int) -> str:
    done = run(
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))\n"
        f"print(max_connections({wanted}))\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    return done.stdout or done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "told"),
    [
        pytest.param(256, 4096, 512, "512\n4096\n", id="raised to the hard limit"),
        pytest.param(256, 256, 512, "96\n256\n", id="as many as fit"),
        pytest.param(256, 256, 50, "50\n256\n", id="no more than wanted"),
    ],
)
@pytest.mark.case("F18")
def test_file_limit_leaves_room_for_all_connections(
    soft: int, hard: int, wanted: int, told: str
) -> None:
    assert room(soft, hard, wanted) == told


@pytest.mark.case("F18")
def test_file_limit_that_is_too_low_is_reported() -> None:
    assert room(100, 100, 512) == (
        "byok.core.errors.CannotStart: Only 100 files may be open at once; "
        "byok needs 128."
    )
