"""numpy is loaded late, and leaves the environment as it was."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

LATE = """
import os, sys
before = dict(os.environ)
import byok.search.vectors.types, byok.search.vectors.recipe
assert "numpy" not in sys.modules
import byok.search.vectors.numeric
assert "numpy" in sys.modules
assert dict(os.environ) == before
"""


def test_numpy_comes_by_way_of_this_module_only() -> None:
    room = Path(__file__).parents[3] / "byok" / "search" / "vectors"
    direct = [
        path.name
        for path in room.rglob("*.py")
        if re.search(r"(?m)^(import|from) numpy", path.read_text("utf-8"))
    ]
    assert direct == []


@pytest.mark.slow
def test_numpy_is_loaded_late_and_the_environment_stays() -> None:
    environ = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", LATE], check=True, env=environ)
