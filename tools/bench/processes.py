"""The processes of a measurement, and their CPU time, memory and files on Linux."""

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.bench.answers import AUGMENT
from tools.bench.client import Target

ROOT = Path(__file__).parents[2]
_READY = "byok is listening on "


@dataclass(frozen=True)
class Child:
    """A process that has printed its address."""

    url: str
    process: "subprocess.Popen[str]"

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self.process.pid


@contextmanager
def start_module(
    *command: str, env: Mapping[str, str] | None = None, root: Path = ROOT
) -> Iterator[Child]:
    """Run a Python module that prints its address first, until the block ends."""
    log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed below
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        encoding="utf-8",
        env={**_environment(), **(env or {})},
        cwd=root,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline().strip()
        if not line.partition("http://127.0.0.1:")[2]:
            log.seek(0)
            raise RuntimeError(f"{command[0]} did not start: {log.read()[-2000:]}")
        yield Child(line.removeprefix(_READY), process)
    finally:
        _end(process)
        log.close()


@contextmanager
def mock(port: int = 0) -> Iterator[Child]:
    """Start the mock upstream, on a free port unless one is given."""
    with start_module("tools.bench.mock", str(port)) as child:
        yield child


@contextmanager
def passthrough(upstream: str) -> Iterator[Target]:
    """Start the pass-through, to which byok is compared."""
    with start_module("tools.bench.passthrough", upstream) as child:
        yield Target("pass-through", f"{child.url}/v1", "openai", pid=child.pid)


@dataclass(frozen=True)
class Daemon:
    """A running byok."""

    target: Target
    home: Path

    @property
    def log(self) -> Path:
        """Its log file."""
        return self.home / "state" / "log" / "byok.log"


@contextmanager
def byok(
    upstream: str,
    *,
    timeout: float | None = None,
    patience: float | None = None,
    root: Path = ROOT,
    **settings: Mapping[str, Any],
) -> Iterator[Daemon]:
    """Start the byok of a checkout with its own home folder.

    It waits `timeout` seconds for a silent upstream and `patience` seconds for a busy
    one; `settings` are further sections of its settings.
    """
    with tempfile.TemporaryDirectory(prefix="byok-bench-") as folder:
        home = Path(folder)
        limits = {"timeout": timeout, "patience": patience}
        limits = {name: value for name, value in limits.items() if value is not None}
        bench = {"base_url": f"{upstream}/v1", "model": "mock", **limits}
        sections = {"upstreams": {"bench": bench}, **settings}
        (home / "config.toml").write_text("".join(_toml(sections)), encoding="utf-8")
        (home / "config.toml").chmod(0o600)
        env = {"BYOK_HOME": folder}
        with start_module("byok", "serve", "--port", "0", env=env, root=root) as child:
            token = (home / "state" / "token").read_text().strip()
            target = Target("byok", child.url, AUGMENT, token, child.pid)
            yield Daemon(target, home)


def _toml(sections: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in sections.items():
        if isinstance(value, dict):
            yield f"[{prefix}{name}]\n"
            yield from _toml(value, f"{prefix}{name}.")
        else:
            yield f"{name} = {json.dumps(value)}\n"


def _environment() -> dict[str, str]:
    environ = {n: v for n, v in os.environ.items() if not n.startswith("BYOK_")}
    return {**environ, "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}


def _end(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.communicate(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far; NaN if it is unknown."""
    total = 0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    except OSError:
        return math.nan
    return total / 1e9


def memory_mib(pid: int, field: str = "VmRSS") -> float:
    """Return the memory of a process now (VmRSS) or at its peak (VmHWM)."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) / 1024
    return math.nan


def forget_peak(pid: int) -> None:
    """Reset the peak of a process's memory."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def open_files(pid: int) -> int:
    """Count the file descriptors of a process; -1 if they are unknown."""
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return -1
