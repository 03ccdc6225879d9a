"""numpy is loaded late, and leaves the environment as it was."""

import os
import subprocess
import sys

import pytest

LATE = """
import os, sys
before = dict(os.environ)
import byok.embeddings.types, byok.embeddings.recipe
assert "numpy" not in sys.modules
import byok.embeddings.numeric
assert "numpy" in sys.modules
assert dict(os.environ) == before
"""


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["", "2"])
def test_numpy_is_loaded_late_and_the_environment_stays(threads: str) -> None:
    environ = {**os.environ, "OPENBLAS_NUM_THREADS": threads or "1"}
    if not threads:
        del environ["OPENBLAS_NUM_THREADS"]
    subprocess.run([sys.executable, "-c", LATE], check=True, env=environ)
