"""The daemon on sockets of a service manager, as `byok.socket` passes them."""

import asyncio
import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from byok.core.daemon.token import read_token
from tests.fakes.patience import PATIENCE, START
from tests.fakes.program import READY, run_byok
from tests.fakes.raw import connected, filled, request
from tests.fakes.service_manager import (
    ServiceManager,
    launch,
    loopback_sockets,
    passing,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="systemd is Linux only")
SERVE = ("-m", "byok", "serve", "--upstream", "demo")
CHAT = request(body=json.dumps({"message": "Hello!"}).encode())


@asynccontextmanager
async def process(
    command: Sequence[str], home: Path, *, handles: Sequence[int] = (), **env: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a daemon until the block ends."""
    home.mkdir(mode=0o700, exist_ok=True)
    started = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        pass_fds=handles,
        env=passing(len(handles), {"BYOK_HOME": str(home), **env}),
    )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
        await started.communicate()


async def is_ready(started: asyncio.subprocess.Process) -> int:
    """Wait for the line that says that it listens; return the port."""
    assert started.stdout is not None
    line = await asyncio.wait_for(started.stdout.readline(), START)
    match = READY.fullmatch(line)
    assert match, line
    return int(match[1])


def facts(home: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads((home / "state/daemon.json").read_bytes())
    return found


async def chat(port: int, home: Path, host: str = "127.0.0.1") -> str:
    token = (home / "state/token").read_text().strip()
    async with connected(port, host) as client:
        await client.send(filled(CHAT, port, token))
        answer = await client.answer(PATIENCE)
    assert answer.status == 200
    return str(answer.json["text"])


def make_token(home: Path) -> str:
    """Make the clients' token of a daemon that has never run."""
    (home / "state").mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    return read_token(home / "state" / "token")


async def test_daemon_answers_on_passed_sockets_also_who_came_before_it(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    token = make_token(home)
    with loopback_sockets(socket.AF_INET, socket.AF_INET6) as sockets:
        port = sockets[0].getsockname()[1]
        handles = [sock.fileno() for sock in sockets]
        async with connected(port) as early:
            await early.send(filled(CHAT, port, token))
            async with process(launch(handles, *SERVE), home, handles=handles) as run:
                assert await is_ready(run) == port
                answer = await early.answer(PATIENCE)
                assert "Hello!" in answer.json["text"]
                for host in ("127.0.0.1", "::1"):
                    assert "Hello!" in await chat(port, home, host)
                assert (facts(home)["port"], facts(home)["pid"]) == (port, run.pid)
                run.send_signal(signal.SIGTERM)
                assert await asyncio.wait_for(run.wait(), PATIENCE) == 0
            with closing(socket.create_connection(("127.0.0.1", port), PATIENCE)):
                pass  # it waits for the next daemon, as the socket is still open


async def test_restart_keeps_the_passed_sockets_and_the_service_manager(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    with (
        loopback_sockets(socket.AF_INET, socket.AF_INET6) as sockets,
        ServiceManager() as manager,
    ):
        port = sockets[0].getsockname()[1]
        handles = [sock.fileno() for sock in sockets]
        command = launch(handles, *SERVE)
        async with process(
            command, home, handles=handles, NOTIFY_SOCKET=manager.address
        ) as run:
            assert await is_ready(run) == port
            before = facts(home)
            done = await asyncio.to_thread(
                run_byok, "restart", env={"BYOK_HOME": str(home)}
            )
            assert done.returncode == 0, done.stderr
            after = facts(home)
            assert "Hello!" in await chat(port, home, "::1")
            assert after["port"] == before["port"]
            assert after["instance"] != before["instance"]
            told = [(await manager.next())[0] for _ in range(4)]
            new = f"MAINPID={after['pid']}"
            assert told == ["READY=1", "RELOADING=1", new, "READY=1"]
            assert await asyncio.wait_for(run.wait(), PATIENCE) == 0
            os.kill(after["pid"], signal.SIGTERM)


async def test_one_passed_socket_is_enough(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with loopback_sockets(socket.AF_INET) as [sock]:
        port = sock.getsockname()[1]
        handles = [sock.fileno()]
        async with process(launch(handles, *SERVE), home, handles=handles) as run:
            assert await is_ready(run) == port
            for host in ("127.0.0.1", "::1"):
                assert "Hello!" in await chat(port, home, host)


async def test_sockets_for_another_process_are_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with loopback_sockets(socket.AF_INET) as [sock]:
        handles = [sock.fileno()]
        command = launch(handles, *SERVE, "--port", "0")
        async with process(
            command, home, handles=handles, LISTEN_PID=str(os.getpid())
        ) as run:
            assert await is_ready(run) != sock.getsockname()[1]


async def test_wrong_descriptors_end_the_start_with_a_cure(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as udp:
        handles = [udp.fileno()]
        async with process(launch(handles, *SERVE), home, handles=handles) as run:
            out, err = await asyncio.wait_for(run.communicate(), PATIENCE)
    assert (run.returncode, out) == (69, b"")
    assert b"not a TCP socket" in err
    assert b"byok service install" in err
    assert b"Traceback" not in err


@pytest.mark.skipif(
    shutil.which("systemd-socket-activate") is None, reason="systemd is not installed"
)
async def test_systemd_passes_sockets_that_byok_takes(tmp_path: Path) -> None:
    home = tmp_path / "home"
    make_token(home)
    with loopback_sockets(socket.AF_INET, socket.AF_INET6) as sockets:
        port = sockets[0].getsockname()[1]
    addresses = [f"--listen={host}:{port}" for host in ("127.0.0.1", "[::1]")]
    kept = [f"--setenv={name}" for name in ("BYOK_HOME", "PYTHONPATH", "PATH")]
    command = ["systemd-socket-activate", *addresses, *kept, sys.executable, *SERVE]
    async with process(command, home) as run:
        assert run.stderr is not None
        for _ in addresses:
            await asyncio.wait_for(run.stderr.readline(), START)
        assert "Hello!" in await chat(port, home, "::1")
        assert await is_ready(run) == port
        assert facts(home)["pid"] == run.pid
