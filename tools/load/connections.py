"""L9: connections that send nothing; L10: clients that hang up in the middle."""

import asyncio
import contextlib
import json
import random
import socket
import struct
import time
import urllib.request
from collections import deque
from typing import Any
from urllib.parse import urlsplit

from tools.bench.client import Target, ask, session
from tools.bench.processes import Daemon, byok, memory_mib, mock, open_files
from tools.bench.spec import Spec
from tools.load.faults import WHOLE, Draw, verdict
from tools.load.outcome import Control, Outcome, percentile

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset, without TIME_WAIT
_TICK_SECONDS = 0.01
_SETTLE_SECONDS = 20.0


async def l9(
    seconds: float, *, rate: int = 1000, most_open: int = 2000, settle: float = 12.0
) -> Outcome:
    """Open 1,000 connections a second that send nothing; keep the newest open."""
    with mock() as upstream, byok(upstream.url) as daemon:
        url, pid = daemon.target.url, daemon.target.pid
        before = open_files(pid)
        with Control(url) as control, Control(url, 0.5, fresh=True) as fresh:
            connected, failed = await asyncio.to_thread(
                _open_silent, url, seconds, rate, most_open
            )
        after = await _wait_for_files(pid, before + 2, settle)
        rss, lines = memory_mib(pid, "VmHWM"), _log_lines(daemon)
    outcome = Outcome("L9")
    outcome.goal("control p99", percentile(control.seconds, 0.99), 1, " s")
    outcome.goal("control requests that failed", control.failed, 0)
    outcome.goal("log lines", lines, 100)
    outcome.goal("descriptors kept", after - before, 2)
    outcome.note(f"highest RSS {rss:.1f} MiB")
    outcome.note(f"{connected} connections made, {failed} refused")
    outcome.note(f"new connections turned away {fresh.failed} of {len(fresh.seconds)}")
    return outcome


def _open_silent(
    url: str, seconds: float, rate: int, most_open: int
) -> tuple[int, int]:
    """Open connections at a rate; return how many succeeded and how many failed."""
    parts = urlsplit(url)
    address = (parts.hostname, parts.port)
    opened: deque[socket.socket] = deque()
    connected = failed = 0
    start = time.monotonic()
    while (elapsed := time.monotonic() - start) < seconds:
        while connected + failed < elapsed * rate:
            if len(opened) >= most_open:
                opened.popleft().close()
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            sock.settimeout(1)
            opened.append(sock)
            try:
                sock.connect(address)
                connected += 1
            except OSError:
                failed += 1
        time.sleep(_TICK_SECONDS)
    for sock in opened:
        sock.close()
    return connected, failed


def _log_lines(daemon: Daemon) -> int:
    """Count the log lines, without those of the control requests."""
    lines = daemon.log.read_text(encoding="utf-8").splitlines()
    return sum(" byok.access: " not in line for line in lines)


async def _wait_for_files(pid: int, max_files: int, seconds: float) -> int:
    """Wait until at most `max_files` files are open; return how many are."""
    end = time.monotonic() + seconds
    while (files := open_files(pid)) > max_files and time.monotonic() < end:
        await asyncio.sleep(0.2)
    return files


async def l10(seconds: float, *, rate: float = 500) -> Outcome:
    """Start 500 requests a second and abort each at a random point."""
    with mock() as upstream, byok(upstream.url) as daemon:
        target = daemon.target
        first = await _check_stream(target)
        before = open_files(target.pid)
        luck = random.Random(1)
        start = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(round(seconds * rate)):
                moment = start + number / rate
                await asyncio.sleep(max(0.0, moment - time.monotonic()))
                group.create_task(_abort(target, number, luck))
        took = time.monotonic() - start
        left_over = await _wait_for_streams(upstream.url)
        after = await _wait_for_files(target.pid, before + 2, _SETTLE_SECONDS)
        stats = await _stats(upstream.url)
        last = await _check_stream(target)
        rss = memory_mib(target.pid, "VmHWM")
    outcome = Outcome("L10")
    outcome.goal("streams still open at the upstream", left_over, 0)
    outcome.goal("descriptors kept", after - before, 2)
    outcome.goal("control streams that failed", bool(first) + bool(last), 0)
    outcome.note(f"upstream connections {stats['connections']}")
    outcome.note(f"asked of the upstream {stats['asked']}, left {stats['left']}")
    outcome.note(f"highest RSS {rss:.1f} MiB")
    outcome.note(f"{rate * seconds / took:.0f} requests/s")
    outcome.figures += filter(None, (first, last))
    return outcome


async def _abort(target: Target, number: int, luck: random.Random) -> None:
    """Send a request, or a part of one, and reset the connection some time later."""
    delay, share = luck.uniform(0, 0.4), luck.choice((0, 0.5, 1, 1, 1, 1, 1, 1))
    parts = urlsplit(target.url)
    with contextlib.suppress(ConnectionError):  # byok refused the connection
        _, writer = await asyncio.open_connection(parts.hostname, parts.port)
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        request = _request(target, Spec(f"{number:08x}", 500, pause=0.02))
        writer.write(request[: round(share * len(request))])
        await asyncio.sleep(delay)
        writer.transport.abort()


def _request(target: Target, spec: Spec) -> bytes:
    url, body = target.request(spec)
    content = json.dumps(body)
    parts = urlsplit(url)
    head = [f"POST {parts.path} HTTP/1.1", f"Host: {parts.netloc}"]
    head += [f"{name}: {value}" for name, value in target.headers.items()]
    head += [f"Content-Length: {len(content)}", "", content]
    return "\r\n".join(head).encode()


async def _wait_for_streams(upstream: str) -> int:
    """Wait until the upstream has no open stream; return how many remain."""
    end = time.monotonic() + _SETTLE_SECONDS
    while (count := int((await _stats(upstream))["open"])) and time.monotonic() < end:
        await asyncio.sleep(0.2)
    return count


async def _stats(upstream: str) -> dict[str, Any]:
    def fetch() -> dict[str, Any]:
        with urllib.request.urlopen(f"{upstream}/stats", timeout=10) as answer:
            stats: dict[str, Any] = json.load(answer)
            return stats

    return await asyncio.to_thread(fetch)


async def _check_stream(target: Target) -> str:
    """Request one complete stream; return what is wrong with it, "" for nothing."""
    spec = Spec("control0", 10, pause=0.01)
    async with session() as http:
        return verdict(Draw(spec, WHOLE), await ask(http, target, spec))
