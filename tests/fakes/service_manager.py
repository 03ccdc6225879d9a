"""systemd for one user: units that really run, sockets passed, READY heard.

The programs systemctl and systemd-run are put into a folder of PATH. Starting the units
opens the sockets of byok.socket, starts the command of byok.service with them, and
waits until it says that it is ready. What runs here runs without pytest.
"""

import asyncio
import errno
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from tests.fakes.patience import PATIENCE, START
from tests.fakes.ports import free_port

ROOT = Path(__file__).parents[2]

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
    port = free_port()
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
            sockets.append(sock)
        yield sockets


_PROGRAM = """#!{python}
import sys
sys.path.insert(0, {root!r})
from tests.fakes.service_manager import main
main({state!r}, sys.argv)
"""


class FakeSystemd:
    """The folder of such programs, and what was asked of them."""

    def __init__(self, folder: Path) -> None:
        """Put the programs into a new `folder`."""
        folder.mkdir()
        self.folder = folder
        for name in ("systemctl", "systemd-run"):
            program = folder / name
            values = {"python": sys.executable, "root": str(ROOT), "state": str(folder)}
            program.write_text(_PROGRAM.format(**values))
            program.chmod(0o755)

    @property
    def path(self) -> str:
        """The value of PATH with these programs first."""
        return os.pathsep.join([str(self.folder), os.environ["PATH"]])

    @property
    def calls(self) -> list[str]:
        """Every call, with the name of the program."""
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def fail(self, call: str) -> None:
        """Let a call that begins so fail from now on."""
        (self.folder / "fails").write_text(call)


def main(state: str, argv: list[str]) -> None:
    """Note the call and answer it."""
    folder, name = Path(state), Path(argv[0]).name
    line = " ".join([name, *argv[1:]])
    with (folder / "calls").open("a") as calls:
        calls.write(line + "\n")
    with suppress(FileNotFoundError):
        if line.startswith((folder / "fails").read_text()):
            sys.exit("Failed to connect to bus: No medium found")
    words = [word for word in argv[1:] if not word.startswith("-")]
    if name == "systemctl":
        answers = {"start": _start, "stop": _stop, "disable": _stop, "show": _show}
        if answer := answers.get(words[0]):
            answer(folder, words[-1])


def _units() -> dict[str, list[str]]:
    """Return the values of both units by their keys."""
    found: dict[str, list[str]] = {}
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "systemd" / "user"
    for unit in ("byok.service", "byok.socket"):
        for line in (config / unit).read_text().splitlines():
            key, separator, value = line.partition("=")
            if separator and not line.startswith("#"):
                found.setdefault(key, []).append(value)
    return found


def _start(folder: Path, unit: str) -> None:
    if _pid(folder):
        return
    units = _units()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        address = f"\0byok-test-{os.getpid()}"
        told.bind(address)
        told.settimeout(START)
        environ = dict(pair.split("=", 1) for pair in map(_word, units["Environment"]))
        environ |= {"NOTIFY_SOCKET": f"@{address[1:]}", "LISTEN_FDS": "2"}
        handles = [_listen(place) for place in units["ListenStream"]]
        command = shlex.split(units["ExecStart"][0].removeprefix(":"))
        process = subprocess.Popen(
            launch(handles, *command[1:]),
            env={"HOME": os.environ.get("HOME", "/"), **environ},
            pass_fds=handles,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        (folder / "pid").write_text(str(process.pid))
        while b"READY=1" not in told.recv(4096):
            pass


def _word(quoted: str) -> str:
    return shlex.split(quoted)[0].replace("%%", "%")


def _listen(place: str) -> int:
    host, _, port = place.rpartition(":")
    family = socket.AF_INET6 if "[" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family is socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    sock.bind((host.strip("[]"), int(port)))
    sock.listen()
    return sock.detach()


def _stop(folder: Path, unit: str) -> None:
    if pid := _pid(folder):
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + START
        while _pid(folder) and time.monotonic() < deadline:
            time.sleep(0.05)


def _show(folder: Path, unit: str) -> None:
    pid = _pid(folder)
    state = "active" if pid else "inactive"
    facts = {"UnitFileState": "enabled", "ActiveState": state, "SubState": "x"}
    for key, value in {**facts, "MainPID": str(pid)}.items():
        print(f"{key}={value}")


def _pid(folder: Path) -> int:
    """Return the process of the service; 0 if it has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        pid = int((folder / "pid").read_text())
        status = Path(f"/proc/{pid}/stat").read_text()
        return 0 if status.rpartition(")")[2].split()[0] == "Z" else pid
    return 0
