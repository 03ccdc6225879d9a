"""Run one target in this process, coverage-guided, until its CPU time is used up."""

import contextlib
import hashlib
import importlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from tools.fuzz.target import Target

SLOW_EVERY = 4000
MAX_BYTES = 4096
_HANG_SECONDS = 30
_MAX_FINDINGS = 40
_MINIMISE_SECONDS = 15.0
_MAX_MEGABYTES = 2048
_WALL_PER_CPU = 12  # seconds on the clock for a second of CPU, on a busy machine
_ROOT = Path(__file__).parents[2]


class Hunt:
    """The findings of one target, each with its smallest input."""

    def __init__(self, target: Target, folder: Path, seconds: float) -> None:
        self._target = target
        self._folder = folder
        self._seconds = seconds
        self._started = time.process_time()
        self._findings: dict[str, tuple[bytes, str]] = {}
        self._executions = 0

    def one(self, data: bytes) -> None:
        """Check one input; end the process when the time is over."""
        self._executions += 1
        self._try(self._target.check, data)
        if self._target.slow is not None and self._executions % SLOW_EVERY == 1:
            self._try(self._target.slow, data)
        if time.process_time() - self._started > self._seconds:
            self._end()

    def _try(self, check: Callable[[bytes], None], data: bytes) -> None:
        try:
            check(data)
        except Exception as error:  # any exception is a finding
            self._record(_location(error), data, error)

    def _record(self, key: str, data: bytes, error: Exception) -> None:
        previous = self._findings.get(key)
        if (previous is None and len(self._findings) < _MAX_FINDINGS) or (
            previous is not None and len(data) < len(previous[0])
        ):
            text = "".join(traceback.format_exception(error))
            self._findings[key] = (data, text)
            name = hashlib.sha1(key.encode(), usedforsecurity=False).hexdigest()[:8]
            (self._folder / f"finding-{name}.bin").write_bytes(data)
            (self._folder / f"finding-{name}.txt").write_text(text, "utf-8", "replace")

    def _end(self) -> NoReturn:
        spent = time.process_time() - self._started
        signal.setitimer(signal.ITIMER_REAL, 0)  # stop libFuzzer's timeout
        deadline = time.process_time() + _MINIMISE_SECONDS
        for key, (data, _) in list(self._findings.items()):
            for check in (self._target.check, self._target.slow):
                if check is not None:
                    self._shrink(check, key, data, deadline)
        result = {
            "executions": self._executions,
            "cpu_seconds": round(spent, 1),
            "findings": [
                {"place": key, "input": repr(data), "text": text.splitlines()[-1][:300]}
                for key, (data, text) in self._findings.items()
            ],
            "facts": self._target.facts(),
        }
        (self._folder / "result.json").write_text(json.dumps(result, indent=1))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # atheris has no other way to stop

    def _shrink(
        self, check: Callable[[bytes], None], key: str, data: bytes, deadline: float
    ) -> None:
        """Shorten the input of a finding as far as it still fails."""
        size = max(1, len(data) // 2)
        while size and time.process_time() < deadline:
            start = 0
            while start < len(data) and time.process_time() < deadline:
                shorter = data[:start] + data[start + size :]
                try:
                    check(shorter)
                except Exception as error:
                    if _location(error) == key:
                        data = shorter
                        self._record(key, data, error)
                        continue
                start += size
            size //= 2


def _location(error: Exception) -> str:
    """Identify a failure by the innermost line of the project."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if str(_ROOT) in f.filename and "site-pack" not in f.name]
    frame = (own or frames)[-1]
    return f"{type(error).__name__} {Path(frame.filename).name}:{frame.lineno}"


def fuzz(name: str, instrumented: list[str], folder: Path, seconds: float) -> NoReturn:
    """Fuzz until the CPU time is used up; the result is in the folder."""
    import atheris

    with atheris.instrument_imports(include=instrumented, enable_loader_override=False):
        module: Any = importlib.import_module(f"tools.fuzz.{name}")
    target: Target = module.TARGET
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in target.seeds:
        digest = hashlib.sha1(seed, usedforsecurity=False).hexdigest()
        (corpus / f"seed-{digest[:12]}").write_bytes(seed)
    words = folder / "words"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words))
    hunt = Hunt(target, folder, seconds)
    options = [
        f"-dict={words}",
        f"-max_len={MAX_BYTES}",
        f"-max_total_time={int(seconds * _WALL_PER_CPU) + 60}",
        f"-timeout={_HANG_SECONDS}",
        f"-rss_limit_mb={_MAX_MEGABYTES}",
        f"-artifact_prefix={folder}/",
        "-reload=0",
    ]
    with contextlib.ExitStack() as stack:
        stack.enter_context(target.opened())
        atheris.Setup([sys.argv[0], *options, str(corpus)], hunt.one)
        atheris.Fuzz()
    raise SystemExit(1)


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)
