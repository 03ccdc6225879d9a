"""One daemon per user: its process and port on record, and a successor in its place."""

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
    LONGEST_WRITE,
    Paths,
    make_private,
    sweep,
    write_private,
)
from byok.core.platform.process import adopt_orphans

# Another command may hold the lock for a moment, to see whether a daemon has it.
_LOOK_SECONDS = 0.2


class Instance(Struct, frozen=True):
    """A running daemon; `instance` is a random id, `started` seconds since 1970."""

    pid: int
    port: int
    instance: str
    started: float

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"


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
            hint="byok status shows where it is. To start another in its place: byok "
            "stop, then this command again.",
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
    write_private(paths.daemon, orjson.dumps(to_builtins(own)).decode())
    return own


def _read_record(paths: Paths) -> Instance | None:
    try:
        return Instance(**orjson.loads(paths.daemon.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None  # the daemon has just started or ended


def _lock(paths: Paths) -> FileLock:
    return FileLock(paths.lock, mode=0o600)


# A restart that loses nothing: a second process takes the place of the daemon.
#
# The daemon starts its own command again and passes its listening sockets. The new
# process loads everything that needs no lock, says so, and waits. Only then does the
# old one stop accepting, close the index, give up the lock and give the word;
# connections that come in between wait in the sockets. The new process serves from then
# on, while the old one finishes its answers. If the new one does not get so far, as
# after a broken upgrade, the old one goes on as if nothing had been asked.
#
# Two pipes connect them: over one the new process says that it has loaded, over the
# other it gets its turn; that one closes when the old process has ended. On Windows
# sockets are not passed this way, and a restart replaces the process.


CAN_HAND_OVER = sys.platform != "win32"
_VARIABLE = "BYOK_TAKES_OVER"  # PID FIXED READ WRITE SOCKET..., file descriptors
_LOADED = b"loaded"
_LOAD_SECONDS = 60.0
# What stands in for a process whose successor runs: whoever started byok waits for it.
_STAND_IN = """
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


class Successor:
    """The process that takes over from this one."""

    def __init__(self, process: "subprocess.Popen[bytes]", turn: int) -> None:
        self._process = process
        self._turn = turn  # closed with this process, which tells the other its end

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def give_turn(self, state: bytes) -> None:
        """Let it serve: this process has released everything that only one may have.

        `state` is what it should know, without a line end.
        """
        with contextlib.suppress(BrokenPipeError):  # it has ended; its exit code tells
            os.write(self._turn, state + b"\n")

    def end(self) -> None:
        """End it before it has had its turn."""
        self._process.kill()
        self._process.wait()
        _close(self._turn)

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it still runs."""
        self._process.send_signal(number)

    def stand_in(self, *, is_first: bool) -> None:
        """Become a small process that ends with the successor, and by its exit code.

        Call it last: it does not return. Signals to end are passed on. On Linux the
        `first` process stands in for all that follow.
        """
        if sys.platform == "linux" and not is_first:
            return
        command = [sys.executable, "-I", "-S", "-c", _STAND_IN, str(self.pid)]
        os.execve(sys.executable, command, {})  # noqa: S606 - our own interpreter


def start_successor(
    sockets: Sequence[socket],
    environment: Mapping[str, str],
    *,
    has_fixed_port: bool = False,
) -> Successor:
    """Start the command of this process again; return once it has loaded. Blocks.

    `has_fixed_port`: the sockets are a service manager's, so no setting changes them.

    Raises:
        CannotStart: it does not get so far in time.
    """
    adopt_orphans()
    said, say = os.pipe()
    turn_in, turn_out = os.pipe()
    handles = [sock.fileno() for sock in sockets]
    passed = (turn_in, say, *handles)
    variable = " ".join(map(str, (os.getpid(), int(has_fixed_port), *passed)))
    try:
        process = subprocess.Popen(  # noqa: S603 - as this one was started
            [sys.executable, *sys.orig_argv[1:]],
            env={**os.environ, **environment, _VARIABLE: variable},
            pass_fds=passed,
        )
    except OSError as error:
        _close(said, say, turn_in, turn_out)
        raise _failure(str(error.strerror)) from error
    _close(say, turn_in)
    ready, _, _ = select.select([said], [], [], _LOAD_SECONDS)
    has_loaded = bool(ready) and os.read(said, 64) == _LOADED
    _close(said)
    if not has_loaded:
        process.kill()
        process.wait()
        _close(turn_out)
        raise _failure(f"it ended or hung (exit code {process.returncode})")
    return Successor(process, turn_out)


def _failure(why: str) -> CannotStart:
    return CannotStart(
        f"byok could not start again: {why}. The running one goes on.",
        code="restart_failed",
        hint="See its messages, then try again.",
    )


class Predecessor(Struct):
    """The daemon whose place this process takes.

    `sockets` are its listening ones, `has_fixed_port` if a service manager opened
    them; `state` is what it gave with the turn.
    """

    sockets: Sequence[socket]
    has_fixed_port: bool
    _turn: int
    _say: int
    state: bytes = b""

    def wait_for_turn(self) -> None:
        """Say that everything is loaded, and wait for the word. Blocks.

        If the predecessor ends instead, its place is free, too.
        """
        os.write(self._say, _LOADED)
        _close(self._say)
        while not self.state.endswith(b"\n") and (piece := os.read(self._turn, 2**16)):
            self.state += piece

    def on_end(self, act: Callable[[], None]) -> None:
        """Call `act` in the running loop once the predecessor has ended.

        By then it has finished its answers.
        """
        loop = asyncio.get_running_loop()

        def look() -> None:
            if not os.read(self._turn, 2**16):
                loop.remove_reader(self._turn)
                _close(self._turn)
                act()

        loop.add_reader(self._turn, look)


def take_predecessor() -> Predecessor | None:
    """Return the daemon whose successor this process is, None if it is nobody's.

    Raises:
        CannotStart: what was passed are not byok's sockets.
    """
    given = os.environ.pop(_VARIABLE, "").split()
    if not given or not CAN_HAND_OVER or given[0] != str(os.getppid()):
        return None
    try:
        is_fixed, turn, say, *handles = map(int, given[1:])
    except ValueError:
        return None  # nothing that byok wrote
    for handle in (turn, say):
        os.set_inheritable(handle, False)
    return Predecessor(adopt_sockets(handles), bool(is_fixed), turn, say)


def _close(*handles: int) -> None:
    for handle in handles:
        os.close(handle)
