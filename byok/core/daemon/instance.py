"""One daemon per user: its lock, its record, and a restart that loses no request.

Restart: a second process takes the place of the daemon. The daemon starts its own
command again and passes its listening sockets. The new process loads everything that
needs no lock, reports this, and waits. Only then does the old process stop accepting,
close the index, release the lock and give the turn to the new one. Connections that
arrive meanwhile wait in the sockets. From then on the new process serves, while the old
one finishes its answers. If the new process fails before its turn, such as after a
broken upgrade, the old one goes on as before.

Two pipes connect them: over one the new process reports that it has loaded, over the
other it gets its turn. The second closes when the old process has ended. Windows cannot
pass sockets this way, so there a restart replaces the process.
"""

import asyncio
import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from socket import socket

import orjson
from filelock import FileLock, Timeout
from msgspec import Struct, to_builtins

from byok.core.daemon.sockets import adopt_sockets
from byok.core.errors import CannotStart
from byok.core.platform.paths import (
    MAX_WRITE_SECONDS,
    Paths,
    make_private,
    sweep,
    write_private,
)
from byok.core.platform.process import adopt_orphans

# Another command may hold the lock briefly, to see whether a daemon has it.
_LOCK_SECONDS = 0.2
CAN_HAND_OVER = sys.platform != "win32"
_VARIABLE = "BYOK_TAKES_OVER"  # PID FIXED READ WRITE SOCKET..., file descriptors
_LOADED = b"loaded"
_LOAD_SECONDS = 60.0
# A program that stands in for a process whose successor runs: whoever started byok
# waits for the first process.
_STAND_IN_PROGRAM = """
import os, signal, sys
def end(number, frame):
    for pid in children():
        os.kill(pid, number)
def children():
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return list(map(int, file.read().split()))
    except OSError:
        return [int(sys.argv[1])]
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to both
signal.signal(signal.SIGHUP, signal.SIG_IGN)
code = 0
while True:
    try:
        code = os.waitstatus_to_exitcode(os.wait()[1])
    except ChildProcessError:
        sys.exit(code if code >= 0 else 128 - code)
"""


class Instance(Struct, frozen=True):
    """A running daemon; `instance` is a random id, `started` seconds since 1970."""

    pid: int
    port: int
    instance: str
    started: float

    @property
    def url(self) -> str:
        """The base URL of the daemon."""
        return f"http://127.0.0.1:{self.port}"


def is_held(paths: Paths) -> bool:
    """Tell whether a daemon holds the lock: it is running or starting."""
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
    """Hold the daemon's lock, which the system releases even after a crash.

    Yields a function that releases it before the block ends, for a successor.

    Raises:
        CannotStart: another daemon holds the lock.
    """
    make_private(paths.state_dir)
    lock = _lock(paths)
    try:
        lock.acquire(timeout=_LOCK_SECONDS)
    except Timeout:
        running = _read_record(paths)
        details = f" (pid {running.pid}, port {running.port})" if running else ""
        raise CannotStart(
            f"byok is already running{details}.",
            code="already_running",
            hint="byok status shows where it is. To start another in its place: byok "
            "stop, then this command again.",
        ) from None
    for written_here_only in (paths.daemon, paths.models):
        sweep(written_here_only)
    tokens = (paths.token, paths.metrics_token, paths.owner_secret)
    for written_by_commands in (*tokens, paths.vault):
        sweep(written_by_commands, older_than=MAX_WRITE_SECONDS)
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
    record = Instance(os.getpid(), port, instance, time.time())
    write_private(paths.daemon, orjson.dumps(to_builtins(record)).decode())
    return record


def _read_record(paths: Paths) -> Instance | None:
    try:
        return Instance(**orjson.loads(paths.daemon.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None  # the daemon has just started or ended


def _lock(paths: Paths) -> FileLock:
    return FileLock(paths.lock, mode=0o600)


class Successor:
    """The process that takes the place of this one."""

    def __init__(self, process: "subprocess.Popen[bytes]", turn: int) -> None:
        self._process = process
        self._turn = turn  # a pipe; the end of this process closes it

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def give_turn(self, state: bytes) -> None:
        """Let it serve: this process has released the lock and the index.

        `state` is passed to it, and holds no line end.
        """
        with contextlib.suppress(BrokenPipeError):  # it has ended, with an exit code
            os.write(self._turn, state + b"\n")

    def end(self) -> None:
        """End it before its turn."""
        self._process.kill()
        self._process.wait()
        _close(self._turn)

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it still runs."""
        self._process.send_signal(number)

    def stand_in(self, *, is_first: bool) -> None:
        """Become a small process that ends with the successor, with its exit code.

        Call it last: it does not return. Signals to end are passed on. On Linux the
        first process stands in for all successors; the others return here and end.
        """
        if sys.platform == "linux" and not is_first:
            return
        command = [sys.executable, "-I", "-S", "-c", _STAND_IN_PROGRAM, str(self.pid)]
        os.execve(sys.executable, command, {})  # noqa: S606 - our own interpreter


def start_successor(
    sockets: Sequence[socket],
    environment: Mapping[str, str],
    *,
    has_fixed_port: bool = False,
) -> Successor:
    """Start the command of this process again, and wait until it has loaded. Blocks.

    With `has_fixed_port` the sockets are a service manager's: settings do not change
    them.

    Raises:
        CannotStart: it does not load in time.
    """
    adopt_orphans()
    loaded_in, loaded_out = os.pipe()
    turn_in, turn_out = os.pipe()
    handles = [sock.fileno() for sock in sockets]
    handed_over = (turn_in, loaded_out, *handles)
    variable = " ".join(map(str, (os.getpid(), int(has_fixed_port), *handed_over)))
    try:
        process = subprocess.Popen(  # noqa: S603 - as this one was started
            [sys.executable, *sys.orig_argv[1:]],
            env={**os.environ, **environment, _VARIABLE: variable},
            pass_fds=handed_over,
        )
    except OSError as error:
        _close(loaded_in, loaded_out, turn_in, turn_out)
        raise _restart_error(str(error.strerror)) from error
    _close(loaded_out, turn_in)
    ready, _, _ = select.select([loaded_in], [], [], _LOAD_SECONDS)
    has_loaded = bool(ready) and os.read(loaded_in, 64) == _LOADED
    _close(loaded_in)
    if not has_loaded:
        process.kill()
        process.wait()
        _close(turn_out)
        raise _restart_error(f"it ended or hung (exit code {process.returncode})")
    return Successor(process, turn_out)


def _restart_error(reason: str) -> CannotStart:
    return CannotStart(
        f"byok could not start again: {reason}. The running one goes on.",
        code="restart_failed",
        hint="See its messages, then try again.",
    )


class Predecessor(Struct):
    """The daemon whose place this process takes.

    `sockets` are its listening sockets, with `has_fixed_port` those of a service
    manager; `state` is what it passes with the turn.
    """

    sockets: Sequence[socket]
    has_fixed_port: bool
    _turn: int
    _loaded_out: int
    state: bytes = b""

    def wait_for_turn(self) -> None:
        """Report that everything is loaded, and wait for the turn. Blocks.

        It also returns if the predecessor ends without giving the turn.
        """
        os.write(self._loaded_out, _LOADED)
        _close(self._loaded_out)
        while not self.state.endswith(b"\n") and (piece := os.read(self._turn, 2**16)):
            self.state += piece

    def on_end(self, act: Callable[[], None]) -> None:
        """Call `act` in the running loop once the predecessor has ended."""
        loop = asyncio.get_running_loop()

        def check_end() -> None:
            if not os.read(self._turn, 2**16):
                loop.remove_reader(self._turn)
                _close(self._turn)
                act()

        loop.add_reader(self._turn, check_end)


def pop_predecessor() -> Predecessor | None:
    """Return the daemon whose successor this process is, if any.

    Raises:
        CannotStart: the sockets that were passed are not byok's.
    """
    values = os.environ.pop(_VARIABLE, "").split()
    if not values or not CAN_HAND_OVER or values[0] != str(os.getppid()):
        return None
    try:
        is_fixed, turn, loaded_out, *handles = map(int, values[1:])
    except ValueError:
        return None  # byok did not write the variable
    for handle in (turn, loaded_out):
        os.set_inheritable(handle, False)
    return Predecessor(adopt_sockets(handles), bool(is_fixed), turn, loaded_out)


def _close(*handles: int) -> None:
    for handle in handles:
        os.close(handle)
