"""A service manager: it hears what the daemon tells, and passes sockets to programs.

It does by hand what systemd does, so that tests can pass what systemd never would.
"""

import asyncio
import errno
import os
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryDirectory
from typing import Self

from tests.fakes.patience import PATIENCE
from tests.fakes.program import ROOT

# Moves what it inherited to the numbers from 3 on, then becomes the program.
_LAUNCH = """
import fcntl, os, sys
given = [int(number) for number in sys.argv[1].split()]
above = [fcntl.fcntl(number, fcntl.F_DUPFD, 100) for number in given]
for number, handle in enumerate(above, 3):
    os.dup2(handle, number, inheritable=True)
    os.close(handle)
os.environ.setdefault("LISTEN_PID", str(os.getpid()))
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


class ServiceManager:
    """The socket that a program tells its state to; a block closes it."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="byok")  # a short path
        self.address = f"{self._folder.name}/notify"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.address)
        self._socket.setblocking(False)

    async def next(self, patience: float = PATIENCE) -> list[str]:
        """Return the lines of the next message."""
        loop = asyncio.get_running_loop()
        waiting = loop.sock_recv(self._socket, 4096)
        return (await asyncio.wait_for(waiting, patience)).decode().split("\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self._socket.close()
        self._folder.cleanup()


def launch(handles: Sequence[int], *arguments: str) -> list[str]:
    """Return the command that starts Python with these as 3, 4 ..., for `pass_fds`."""
    numbers = " ".join(map(str, handles))
    return [sys.executable, "-c", _LAUNCH, numbers, *arguments]


def passing(count: int | str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment that tells a program of its sockets."""
    paths = {"PYTHONPATH": str(ROOT)}
    return {**os.environ, **paths, "LISTEN_FDS": str(count), **(more or {})}


@contextmanager
def loopback_sockets(*families: socket.AddressFamily) -> Iterator[list[socket.socket]]:
    """Give listening sockets on one free port of loopback, one a family."""
    hosts = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}
    port = 0
    with ExitStack() as stack:
        sockets = []
        for family in families:
            sock = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                sock.bind((hosts[family], port))
            except OSError as error:
                if family is socket.AF_INET or error.errno == errno.EADDRINUSE:
                    raise
                import pytest  # slow, and programs of tests import this module

                pytest.skip("this machine has no ::1")
            sock.listen()
            port = sock.getsockname()[1]
            sockets.append(sock)
        yield sockets
