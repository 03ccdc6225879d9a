"""L9, connections that say nothing; L10, clients that leave in the middle."""

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

_AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset, leave no trace
_TICK = 0.01
_SETTLE = 20.0


async def l9(
    seconds: float, *, rate: int = 1000, most_open: int = 2000, settle: float = 12.0
) -> Outcome:
    """Open 1,000 connections a second that send nothing; keep the newest open."""
    with mock() as upstream, byok(upstream.url) as daemon:
        url, pid = daemon.target.url, daemon.target.pid
        before = open_files(pid)
        with Control(url) as control, Control(url, 0.5, fresh=True) as fresh:
            made, failed = await asyncio.to_thread(
                _silent, url, seconds, rate, most_open
            )
        after = await _settled(pid, before + 2, settle)
        rss, lines = memory_mib(pid, "VmHWM"), _log_lines(daemon)
    outcome = Outcome("L9")
    outcome.goal("control p99", percentile(control.seconds, 0.99), 1, " s")
    outcome.goal("control requests that failed", control.failed, 0)
    outcome.goal("log lines", lines, 100)
    outcome.goal("descriptors kept", after - before, 2)
    outcome.note(f"highest RSS {rss:.1f} MiB")
    outcome.note(f"{made} connections made, {failed} refused")
    outcome.note(f"new connections turned away {fresh.failed} of {len(fresh.seconds)}")
    return outcome


def _silent(url: str, seconds: float, rate: int, most_open: int) -> tuple[int, int]:
    """Open connections at a rate; return how many came about and how many not."""
    parts = urlsplit(url)
    address = (parts.hostname, parts.port)
    opened: deque[socket.socket] = deque()
    made = failed = 0
    start = time.monotonic()
    while (passed := time.monotonic() - start) < seconds:
        while made + failed < passed * rate:
            if len(opened) >= most_open:
                opened.popleft().close()
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            sock.settimeout(1)
            opened.append(sock)
            try:
                sock.connect(address)
                made += 1
            except OSError:
                failed += 1
        time.sleep(_TICK)
    for sock in opened:
        sock.close()
    return made, failed


def _log_lines(daemon: Daemon) -> int:
    """Count what was logged, but for the lines of the control requests."""
    lines = daemon.log.read_text(encoding="utf-8").splitlines()
    return sum(" byok.access: " not in line for line in lines)


async def _settled(pid: int, most: int, seconds: float) -> int:
    """Wait until no more than `most` files are open; return how many there are."""
    end = time.monotonic() + seconds
    while (files := open_files(pid)) > most and time.monotonic() < end:
        await asyncio.sleep(0.2)
    return files


async def l10(seconds: float, *, rate: float = 500) -> Outcome:
    """Start 500 requests a second and leave each at a random point."""
    with mock() as upstream, byok(upstream.url) as daemon:
        target = daemon.target
        first = await _whole(target)
        before = open_files(target.pid)
        luck = random.Random(1)
        start = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(round(seconds * rate)):
                moment = start + number / rate
                await asyncio.sleep(max(0.0, moment - time.monotonic()))
                group.create_task(_leave(target, number, luck))
        took = time.monotonic() - start
        left_over = await _none_open(upstream.url)
        after = await _settled(target.pid, before + 2, _SETTLE)
        stats = await _stats(upstream.url)
        last = await _whole(target)
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


async def _leave(target: Target, number: int, luck: random.Random) -> None:
    """Send a request, or a part of one, and break the connection some time later."""
    stay, share = luck.uniform(0, 0.4), luck.choice((0, 0.5, 1, 1, 1, 1, 1, 1))
    parts = urlsplit(target.url)
    with contextlib.suppress(ConnectionError):  # turned away: it left first
        _, writer = await asyncio.open_connection(parts.hostname, parts.port)
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        request = _request(target, Spec(f"{number:08x}", 500, pause=0.02))
        writer.write(request[: round(share * len(request))])
        await asyncio.sleep(stay)
        writer.transport.abort()


def _request(target: Target, spec: Spec) -> bytes:
    url, body = target.request(spec)
    content = json.dumps(body)
    parts = urlsplit(url)
    head = [f"POST {parts.path} HTTP/1.1", f"Host: {parts.netloc}"]
    head += [f"{name}: {value}" for name, value in target.headers.items()]
    head += [f"Content-Length: {len(content)}", "", content]
    return "\r\n".join(head).encode()


async def _none_open(upstream: str) -> int:
    """Wait until the upstream has no open stream; return how many are left."""
    end = time.monotonic() + _SETTLE
    while (still := int((await _stats(upstream))["open"])) and time.monotonic() < end:
        await asyncio.sleep(0.2)
    return still


async def _stats(upstream: str) -> dict[str, Any]:
    def got() -> dict[str, Any]:
        with urllib.request.urlopen(f"{upstream}/stats", timeout=10) as answer:
            stats: dict[str, Any] = json.load(answer)
            return stats

    return await asyncio.to_thread(got)


async def _whole(target: Target) -> str:
    """Ask for one whole stream; return what was wrong with it."""
    spec = Spec("control0", 10, pause=0.01)
    async with session() as http:
        return verdict(Draw(spec, WHOLE), await ask(http, target, spec))
