"""Killed at any moment, filling loses nothing stored and asks for nothing again."""

import os
from pathlib import Path

import pytest

from tests.fakes.vector_kills import run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.mark.case("F50")
@pytest.mark.slow
def test_filling_survives_three_kills(tmp_path: Path) -> None:
    run(tmp_path, 3, seed=os.getpid())
