"""A second user of the machine, who wants the first one's secrets.

It is a process with another user id where the tests may start one, as root may. Else it
has the same id, and does what needs no rights.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from byok.protocols.augment.endpoints import ENDPOINTS
from tests.fakes.patience import PATIENCE, START

_NOBODY = 65534
_THIEF = """
import glob, http.client, json, os, sys
home, port, secrets = sys.argv[1], int(sys.argv[2]), json.loads(sys.stdin.read())
got = []
def look(name, raw):
    got.extend(f"{name}: {n}" for n, s in enumerate(secrets) if s.encode() in raw)
for folder, _, files in os.walk(home):
    for file in files:
        try:
            look(file, open(os.path.join(folder, file), "rb").read())
        except OSError:
            pass
for process in glob.glob("/proc/[0-9]*"):
    for part in ("cmdline", "environ", "maps", "fd/0", "fd/1", "fd/2"):
        try:
            look(process + part, open(f"{process}/{part}", "rb").read(1 << 20))
        except OSError:
            pass
for pattern in ("/tmp/**/*byok*", "/dev/shm/*", "/run/user/*/*"):
    for file in glob.glob(pattern):
        try:
            look(file, open(file, "rb").read(1 << 20))
        except OSError:
            pass
def ask(path, body, token=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = "Bearer " + token
    connection.request("POST", path, json.dumps(body), headers)
    answer = connection.getresponse()
    raw = answer.read()
    look(path, raw)
    if answer.status == 200 and not path.startswith("/health"):
        got.append(f"200 {path}")
for path in json.loads(sys.argv[3]):
    for token in (None, "", "0" * 43, "byok_owner_" + "0" * 64, "byok_ui_" + "0" * 43):
        ask(path, {"code": "00000-00000", "root": "/", "message": "x"}, token)
ask("/health/challenge", {"nonce": "0123456789abcdef"})
print(json.dumps({"uid": os.getuid(), "got": got}))
"""


def _find_python() -> tuple[list[str], dict[str, Any]]:
    """Return a Python for a second user, and the options that make it one."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        other: dict[str, Any] = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
        for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
            try:
                done = subprocess.run([python, "-c", ""], cwd="/", check=False, **other)
            except OSError:
                continue
            if done.returncode == 0:
                return [python], other
    return [sys.executable], {}


def run_thief(home: Path, port: int, secrets: list[str]) -> dict[str, Any]:
    """Let the second user try everything; return what it got."""
    python, other = _find_python()
    paths = [row.path for row in ENDPOINTS] + [
        "/v1/models",
        "/metrics",
        "/ui/api/daemon",
    ]
    arguments = [*python, "-I", "-c", _THIEF, str(home), str(port), json.dumps(paths)]
    done = subprocess.run(
        arguments,
        input=json.dumps(secrets),
        capture_output=True,
        text=True,
        cwd="/",
        env={},
        timeout=START,
        check=False,
        **other,
    )
    assert not done.returncode, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


_SQUATTER = """
import socket, sys, threading
server = socket.create_server(("127.0.0.1", 0), backlog=64)
print(server.getsockname()[1], flush=True)
def answer(connection):
    raw = b""
    connection.settimeout(1)
    try:
        while len(raw) < 1 << 16:
            piece = connection.recv(4096)
            if not piece:
                break
            raw += piece
            if b"\\r\\n\\r\\n" in raw:
                connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n"
                    b"Content-Type: application/json\\r\\n\\r\\n{}")
    except OSError:
        pass
    sys.stderr.buffer.write(raw + b"\\n")
    sys.stderr.buffer.flush()
    connection.close()
while True:
    threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()
"""


@contextmanager
def squatting(log: Path) -> Iterator[int]:
    """Let the second user hold a port, and write down all that comes."""
    python, other = _find_python()
    with log.open("wb") as heard:
        process = subprocess.Popen(
            [*python, "-I", "-c", _SQUATTER],
            stdout=subprocess.PIPE,
            stderr=heard,
            cwd="/",
            env={},
            **other,
        )
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


_BESIEGER = """
import socket, sys, threading, time
port, over, taken, tries = int(sys.argv[1]), threading.Event(), 0, 0
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
print("begun", flush=True)
while not over.is_set():
    for option in (None, socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        for address in ("127.0.0.1", "0.0.0.0"):
            with socket.socket() as sock:
                if option:
                    sock.setsockopt(socket.SOL_SOCKET, option, 1)
                tries += 1
                try:
                    sock.bind((address, port))
                    sock.listen()
                    taken += 1
                except OSError:
                    pass
    time.sleep(0.002)
print(tries, taken)
"""


class Siege:
    """How often the second user tried to get a port, and how often it got it."""

    tries = 0
    taken = 0


@contextmanager
def besieging(port: int) -> Iterator[Siege]:
    """Let the second user try to get a port, all the time until the block ends."""
    python, other = _find_python()
    siege = Siege()
    with subprocess.Popen(
        [*python, "-I", "-c", _BESIEGER, str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd="/",
        env={},
        **other,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        try:
            yield siege
        finally:
            out, _ = process.communicate(timeout=PATIENCE)
            siege.tries, siege.taken = map(int, out.split())
