"""Killed at any moment, the store loses nothing that was acknowledged."""

import os
from pathlib import Path

import pytest

from tests.fakes.kills import run

KILLS = int(os.environ.get("BYOK_KILLS", "0"))  # 200 take a minute or two
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.mark.slow
@pytest.mark.case("F25")
def test_crash_recovery_survives_a_dozen_kills(tmp_path: Path) -> None:
    assert run(tmp_path, 12, seed=os.getpid()).startswith("12 kills")


@pytest.mark.case("F25")
@pytest.mark.slow
@pytest.mark.skipif(not KILLS, reason="BYOK_KILLS says how many")
def test_crash_recovery_survives_as_many_kills_as_wanted(tmp_path: Path) -> None:
    assert run(tmp_path, KILLS)
