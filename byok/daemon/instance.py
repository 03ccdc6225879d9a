"""Allow one daemon per user, and record its process and port."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import orjson
from filelock import FileLock, Timeout

from byok.errors import CannotStart
from byok.platform.paths import LONGEST_WRITE, Paths, make_private, sweep, write_private

# Another command may hold the lock for a moment, to see whether a daemon has it.
_LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Instance:
    """A running daemon; `instance` is a random id, `started` seconds since 1970."""

    pid: int
    port: int
    instance: str
    started: float


def is_held(paths: Paths) -> bool:
    """Tell whether a daemon holds the lock: it runs, or is just starting."""
    make_private(paths.state_dir)
    try:
        with _lock(paths).acquire(timeout=0):
            return False
    except Timeout:
        return True


def find_instance(paths: Paths) -> Instance | None:
    """Return the record of the running daemon, or None."""
    return _read_record(paths) if is_held(paths) else None


@contextmanager
def only_instance(paths: Paths) -> Iterator[Callable[[], None]]:
    """Hold the lock of the daemon; the system frees it even after a crash.

    Gives what releases it before the block ends, for a process that takes over.

    Raises:
        CannotStart: another daemon holds it.
    """
    make_private(paths.state_dir)
    lock = _lock(paths)
    try:
        lock.acquire(timeout=_LOOK_SECONDS)
    except Timeout:
        other = _read_record(paths)
        where = f" (pid {other.pid}, port {other.port})" if other else ""
        raise CannotStart(
            f"byok is already running{where}.",
            code="already_running",
            hint="byok status shows where it is.",
        ) from None
    for written_here_only in (paths.daemon, paths.models):
        sweep(written_here_only)
    tokens = (paths.token, paths.metrics_token, paths.owner_secret)
    for written_by_commands in (*tokens, paths.vault):
        sweep(written_by_commands, older_than=LONGEST_WRITE)
    paths.dashboard_token.unlink(missing_ok=True)  # nothing accepts it any more
    try:
        yield lock.release
    finally:
        recorded = _read_record(paths)
        if recorded and recorded.pid == os.getpid():
            paths.daemon.unlink(missing_ok=True)
        lock.release()


def write_record(paths: Paths, port: int, instance: str) -> Instance:
    """Record where this daemon listens."""
    own = Instance(os.getpid(), port, instance, time.time())
    write_private(paths.daemon, orjson.dumps(asdict(own)).decode())
    return own


def _read_record(paths: Paths) -> Instance | None:
    try:
        return Instance(**orjson.loads(paths.daemon.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None  # the daemon has just started or ended


def _lock(paths: Paths) -> FileLock:
    return FileLock(paths.lock, mode=0o600)
