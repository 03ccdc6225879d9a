"""A process that has imported byok, and becomes byok anew for each daemon and command.

Importing costs more than all else that a start does. What comes of a fork is a process
as any other: it has its own id, session, environment, folder and pipes, and may be
killed. Only on Linux; what starts Python itself, or depends on its flags, cannot be
tested this way.
"""

import asyncio
import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.fakes.patience import START

CAN_FORK = sys.platform == "linux"
_LARGEST = 2**20
_ROOT = Path(__file__).parents[2]


class Forked:
    """A process of byok that the template made."""

    def __init__(self, pid: int, ending: socket.socket) -> None:
        self.pid = pid
        self.stdout: asyncio.StreamReader | None = None
        self._ending = ending
        self._code: int | None = None

    @property
    def returncode(self) -> int | None:
        """Its exit code once it has ended, or the signal that ended it, negative."""
        if self._code is None and select.select([self._ending], [], [], 0)[0]:
            self._code = int(self._ending.recv(64))
            self._ending.close()
        return self._code

    def wait_for_end(self, seconds: float = START) -> int:
        """Block until it has ended; return its exit code."""
        if self._code is None:
            assert select.select([self._ending], [], [], seconds)[0], "it goes on"
        code = self.returncode
        assert code is not None
        return code

    async def wait(self) -> int:
        """Wait until it has ended; return its exit code."""
        while (code := self.returncode) is None:
            await asyncio.sleep(0.01)
        return code

    async def communicate(self) -> tuple[bytes, None]:
        """Read what it still writes to stdout; wait until it has ended."""
        out = await self.stdout.read() if self.stdout else b""
        await self.wait()
        return out, None

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def fork(
    arguments: Sequence[str],
    env: Mapping[str, str],
    cwd: Path,
    handles: tuple[int, int, int],
) -> Forked:
    """Start byok with these arguments; `handles` are its stdin, stdout and stderr."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        order = json.dumps([arguments, dict(env), str(cwd)]).encode()
        socket.send_fds(_template(), [order], [theirs.fileno(), *handles])
    pid = int(ours.recv(64))
    return Forked(pid, ours)


@cache
def _template() -> socket.socket:
    """Start the template of this process; it ends with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LARGEST)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.fakes.template", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            cwd=_ROOT,
            start_new_session=True,
        )
    atexit.register(process.wait)
    atexit.register(ours.close)  # first
    return ours


class _Order(NamedTuple):
    arguments: list[str]
    env: dict[str, str]
    cwd: str
    handles: list[int]  # where its end is told, stdin, stdout, stderr


def _take_orders(orders: socket.socket) -> _Order | None:
    """Fork for each order: return it in the new process, and None at the end."""
    endings: dict[int, tuple[int, socket.socket]] = {}
    poll = select.poll()
    poll.register(orders, select.POLLIN)
    while True:
        for handle, _ in poll.poll():
            if handle != orders.fileno():
                poll.unregister(handle)
                os.close(handle)
                pid, ending = endings.pop(handle)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with ending:
                    _tell(ending, code)
                continue
            data, handles, _, _ = socket.recv_fds(orders, _LARGEST, 4)
            if not data:
                return None
            pid = os.fork()
            if not pid:
                orders.close()
                for watched, (_, ending) in endings.items():
                    os.close(watched)
                    ending.close()
                arguments, env, cwd = json.loads(data)
                return _Order(arguments, env, cwd, handles)
            ending = socket.socket(fileno=handles[0])
            for other in handles[1:]:
                os.close(other)
            _tell(ending, pid)
            watched = os.pidfd_open(pid)
            endings[watched] = pid, ending
            poll.register(watched, select.POLLIN)


def _tell(listener: socket.socket, number: int) -> None:
    try:
        listener.send(str(number).encode())
    except BrokenPipeError:  # the test is over
        return


def _become(order: _Order) -> None:
    """Make this process what a start of Python would have made."""
    os.setsid()
    ending, *handles = order.handles
    os.close(ending)
    for number, handle in enumerate(handles):
        os.dup2(handle, number)
        os.close(handle)
    for number, name, mode in (0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"):
        setattr(sys, name, os.fdopen(number, mode, closefd=False))
    os.chdir(order.cwd)
    os.environ.clear()
    os.environ.update(order.env)
    time.tzset()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    sys.argv = ["byok", *order.arguments]
    sys.orig_argv = [sys.executable, "-m", "byok", *order.arguments]
    leave_out_working_folder()


if __name__ == "__main__":
    import byok.server.compose
    import byok.wiring.services  # noqa: F401
    from byok.cli import main
    from byok.cli.commands import ROWS, load_command
    from byok.core.platform.search_path import leave_out_working_folder

    for name in ROWS:
        load_command(name)
    assert len([*Path("/proc/self/task").iterdir()]) == 1, (
        "a thread does not survive a fork"
    )
    gc.freeze()
    if order := _take_orders(socket.socket(fileno=int(sys.argv[1]))):
        _become(order)
        main()
