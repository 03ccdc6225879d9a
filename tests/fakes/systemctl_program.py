"""What the programs of tests/fakes/systemctl.py do; they run without pytest."""

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from tests.fakes.service_manager import launch

_SECONDS = 30.0


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
        told.settimeout(_SECONDS)
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
    """Return a listening socket."""
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
        deadline = time.monotonic() + _SECONDS
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
