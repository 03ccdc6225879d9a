"""Killed at any moment, filling loses nothing stored and asks for nothing again."""

import os
from pathlib import Path

import pytest

from tests.fakes.vector_kills import run

KILLS = int(os.environ.get("BYOK_KILLS", "0"))  # 50 take a minute or two
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.mark.case("F50")
@pytest.mark.slow
def test_filling_survives_five_kills(tmp_path: Path) -> None:
    assert run(tmp_path, 5, seed=os.getpid()).startswith("5 kills")


@pytest.mark.case("F50")
@pytest.mark.slow
@pytest.mark.skipif(not KILLS, reason="BYOK_KILLS says how many")
def test_filling_survives_as_many_kills_as_wanted(tmp_path: Path) -> None:
    assert run(tmp_path, KILLS)
