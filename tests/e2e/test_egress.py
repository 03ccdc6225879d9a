"""What leaves the machine (docs/privacy.md): only the named upstream is reached."""

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

import pytest

from byok.dialects.presets import PRESETS
from tests.fakes.program import ROOT, Program, configure, serving
from tests.fakes.project import make_project
from tests.fakes.raw import request
from tests.fakes.upstream import FakeUpstream

# Python processes that note, in a file, whom they connect to and what they start.
#
# An audit hook sees every call of the socket module, also those of libraries; uvloop,
# which connects below it, is hidden. Programs that are started are noted by their
# names.


_NOTES = "BYOK_TEST_EGRESS"
_HOOK = f'''
import os, sys
sys.modules["uvloop"] = None
_notes = os.open(os.environ["{_NOTES}"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

def _note(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        to = arguments[1]
        told = f"{{to[0]}} {{to[1]}}" if isinstance(to, tuple) else ""
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        told = str(arguments[0])
    elif event in ("subprocess.Popen", "os.posix_spawn", "os.exec"):
        told = os.path.basename(os.fsdecode(arguments[0]))
    else:
        return
    if told:
        os.write(_notes, f"{{event}} {{told}}\\n".encode())

sys.addaudithook(_note)
'''


class Egress:
    """The notes of all processes that run in `environment`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(_HOOK)
        self._notes = folder / "notes"
        self.environment = {
            "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT))),
            _NOTES: str(self._notes),
        }

    @property
    def connections(self) -> Counter[tuple[str, int]]:
        """How often each address was connected to, or sent to."""
        found = self._noted("socket.connect", "socket.sendto", "socket.sendmsg")
        pairs = (told.rsplit(" ", 1) for told in found)
        return Counter((host, int(port)) for host, port in pairs)

    @property
    def names(self) -> set[str]:
        """The names of hosts that were looked up."""
        return {*self._noted("socket.getaddrinfo", "socket.gethostbyname")}

    @property
    def programs(self) -> set[str]:
        """The names of the programs that were started, but for Python itself."""
        started = self._noted("subprocess.Popen", "os.posix_spawn", "os.exec")
        return {*started} - {Path(sys.executable).name}

    def _noted(self, *events: str) -> list[str]:
        lines = (line.split(" ", 1) for line in self._notes.read_text().splitlines())
        return [told for event, told in lines if event in events]


# What tempts a program to connect elsewhere: proxies, keys of vendors, statistics.
TEMPTING = {
    **dict.fromkeys(
        ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"),
        "http://127.0.0.1:9",
    ),
    **{
        preset.key_env: "sk-0123456789abcdefghijklmnop"
        for preset in PRESETS.values()
        if preset.key_env
    },
}
HERE = {"127.0.0.1", "::1", "localhost"}
# byok starts these itself; none of them connects anywhere by what it is asked.
PROGRAMS = {"rg", "git", "systemctl", "systemd-run", "journalctl", "launchctl"}
Body: TypeAlias = Mapping[str, object]
ASKED: Mapping[str, Body] = {
    "/chat-stream": {"message": "Where is the oven heated?"},
    "/chat": {"message": "Where is the oven heated?"},
    "/completion": {"prompt": "def bake(", "suffix": "", "path": "a.py"},
    "/generate-commit-message-stream": {"changed_file_stats": {}, "diff": "+x = 1\n"},
}
ANSWERED_HERE: Mapping[str, Body] = {
    "/get-models": {},
    "/agents/codebase-retrieval": {"information_request": "the oven"},
    "/record-session-events": {"events": [{"secret": "code"}]},
    "/client-metrics": {"metrics": [{"value": 1}]},
    "/chat-feedback": {"rating": 1, "note": "code"},
}
COMMANDS = {
    "index add PROJECT": "files indexed",
    "search oven -w PROJECT": "oven.py",
    "log": "",
    "usage": "",
    "status": "model: byok:fake:m",
    "models": "fake",
    "keys list": "",
    "doctor": "daemon version",
    "config check": "",
    "prompts list": "agent",
    "connect vscode": "augment.advanced",
    "explain upstream_auth": "upstream_auth",
    "service status": "",
}

# Runs each argument as a command; what each writes comes behind a NUL.
ONE_BY_ONE = """
import os, shlex, sys
os.dup2(1, 2)
from byok.cli import main
for line in sys.argv[1:]:
    print(end="\\0", flush=True)
    sys.argv = ["byok", *shlex.split(line)]
    try:
        main()
    except SystemExit:
        pass
    sys.stdout.flush()
"""


@pytest.fixture
def egress(tmp_path: Path) -> Egress:
    return Egress(tmp_path / "egress")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


@pytest.fixture
async def program(
    fake: FakeUpstream, egress: Egress, project: Path, tmp_path: Path
) -> AsyncIterator[Program]:
    """A daemon with one upstream, its processes watched."""
    home = tmp_path / "daemon"
    configure(home, fake.url)
    env = {**TEMPTING, **egress.environment}
    async with serving(home, "--workspace", str(project), env=env) as program:
        yield program


def port_of(fake: FakeUpstream) -> int:
    port = urlsplit(fake.url).port
    assert port
    return port


def check_only(egress: Egress, *ports: int) -> None:
    """Check that nothing was reached, looked up or started but what is known."""
    assert {*egress.connections} <= {(host, port) for host in HERE for port in ports}
    assert egress.names <= HERE
    assert egress.programs <= PROGRAMS


async def test_a_start_and_requests_reach_the_named_upstream_only(
    program: Program, fake: FakeUpstream, egress: Egress
) -> None:
    await program.ask(request(method=b"GET", target=b"/health", body=b""))
    check_only(egress, port_of(fake))
    for target, body in ANSWERED_HERE.items():
        assert (await program.post(target, **body)).status == 200, target
        assert fake.requests == [], target
        check_only(egress, port_of(fake))
    for count, (target, body) in enumerate(ASKED.items(), 1):
        assert (await program.post(target, **body)).status == 200, target
        assert len(fake.requests) >= count, target
        check_only(egress, port_of(fake))
    assert egress.connections[("127.0.0.1", port_of(fake))]


async def test_commands_reach_the_daemon_and_the_named_upstream_only(
    program: Program, fake: FakeUpstream, egress: Egress, project: Path
) -> None:
    commands = {line.replace("PROJECT", str(project)): line for line in COMMANDS}
    env = {**TEMPTING, **egress.environment, "BYOK_HOME": str(program.home)}
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", ONE_BY_ONE, *commands],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **env},
        cwd=ROOT,
        check=True,
    )
    outputs = done.stdout.split("\0")[1:]
    assert len(outputs) == len(commands)
    for command, said in zip(commands.values(), outputs, strict=True):
        assert COMMANDS[command] in said, command
        assert "Traceback" not in said, command
    assert fake.requests == []
    check_only(egress, port_of(fake), program.port)


async def test_a_connection_and_a_program_are_seen(egress: Egress) -> None:
    """The notes can fail: what goes elsewhere is in them."""
    script = (
        "import socket, subprocess, sys\n"
        "sock = socket.socket()\n"
        "sock.settimeout(0.01)\n"
        "sock.connect_ex(('192.0.2.1', 443))\n"
        "socket.getaddrinfo('127.0.0.1', 1)\n"
        "subprocess.run(['true'])\n"
    )
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", script],
        env=egress.environment | {"PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert done.returncode == 0
    assert egress.connections == {("192.0.2.1", 443): 1}
    assert "127.0.0.1" in egress.names
    assert egress.programs == {"true"}
    with pytest.raises(AssertionError):
        check_only(egress, 443)
