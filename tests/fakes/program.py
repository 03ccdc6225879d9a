"""byok as a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.fakes.patience import START

ROOT = Path(__file__).parents[2]
SERVE = (sys.executable, "-m", "byok", "serve")


def run_byok(
    *arguments: str | Path,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    seconds: float = START,
) -> "subprocess.CompletedProcess[str]":
    """Run `python -m byok` to its end in the environment of the test, plus `env`."""
    return subprocess.run(
        [sys.executable, "-m", "byok", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **(env or {})},
        cwd=ROOT,
        timeout=seconds,
        check=False,
    )


@contextmanager
def serving(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    program: Sequence[str] = SERVE,
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Run `byok serve` and give the process and its first line; kill it at the end."""
    process = subprocess.Popen(
        [*program, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, **(env or {})},
        cwd=ROOT,
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline()
    finally:
        process.kill()
        process.communicate()
