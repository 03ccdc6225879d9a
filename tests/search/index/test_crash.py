"""Killed at any moment, the store loses nothing that was acknowledged."""

import os
from pathlib import Path

import pytest

from tests.fakes.kills import run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.mark.slow
@pytest.mark.case("F25")
def test_crash_recovery_survives_eight_kills(tmp_path: Path) -> None:
    run(tmp_path, 8, seed=os.getpid())
