"""Processes that are killed, and what they wrote down until then."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]


def kill_one(module: str, folder: Path, rng: random.Random, longest: float) -> None:
    """Let a module live in the folder, and kill it within some seconds."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, folder, str(rng.randrange(10**9))], cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        process.stdout.readline()
        time.sleep(rng.uniform(0, rng.choice([longest / 10, longest])))
    finally:
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL, errors.decode()
    assert b"Traceback" not in errors, errors.decode()


def say(file: Path, lines: Iterable[str]) -> None:
    """Write down what was acknowledged."""
    with file.open("a") as opened:
        opened.write("".join(f"{line}\n" for line in lines))


def heard(file: Path) -> list[str]:
    """Return the whole lines of a file."""
    return file.read_text().split("\n")[:-1] if file.exists() else []
