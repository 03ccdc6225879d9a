"""L8: many large bodies at once."""

import asyncio
import io
import json
import time
from collections import Counter
from typing import Any

import aiohttp

from tools.bench.answers import AUGMENT, Reading, parse_answer
from tools.bench.client import Target, session
from tools.bench.processes import byok, memory_mib, mock
from tools.bench.spec import Damaged, Spec
from tools.load.outcome import Control, Outcome

_SPEC = Spec(chunks=2)
_WORDS = 'def f(x):\n    return "x"  # € and so on\n'
_NODE_TEXT = "a line of some file, as tools return it, of usual length and so on. " * 2


def of_texts(size: int) -> bytes:
    """Return a chat body of long texts."""
    text = _WORDS * (100_000 // len(_WORDS))
    turn = {"request_message": text, "response_text": "Yes."}
    return _body(turn, size)


def of_nodes(size: int) -> bytes:
    """Return a chat body of very many small nodes."""
    nodes = [
        {"id": n, "type": 0, "text_node": {"content": f"{n} {_NODE_TEXT}"}}
        for n in range(1000)
    ]
    turn = {"request_nodes": nodes, "response_text": "Yes."}
    return _body(turn, size)


def _body(turn: dict[str, Any], size: int) -> bytes:
    each = len(json.dumps(turn))
    turns = [turn] * max(1, size // each)
    return json.dumps({"message": _SPEC.message, "chat_history": turns}).encode()


async def l8(seconds: float, *, clients: int = 16, size: int = 30 * 10**6) -> Outcome:
    """Send 16 chat bodies of 30 MB at once, again and again, of two kinds in turn."""
    bodies = [of_texts(size), of_nodes(size)]
    statuses: Counter[str] = Counter()
    rounds = 0
    with mock() as upstream, byok(upstream.url) as daemon:
        target = daemon.target
        with Control(target.url) as control:
            end = time.monotonic() + seconds
            async with session() as http:
                while time.monotonic() < end or rounds < len(bodies):
                    body = bodies[rounds % len(bodies)]
                    sent = (_send(http, target, body) for _ in range(clients))
                    statuses.update(await asyncio.gather(*sent))
                    rounds += 1
        peak = memory_mib(target.pid, "VmHWM")
    outcome = Outcome("L8")
    outcome.goal("highest RSS", peak, 1.2 * 1024, " MiB")
    outcome.goal("longest stall", max(control.seconds), 1.5, " s")
    outcome.goal("control requests that failed", control.failed, 0)
    bad = sum(n for status, n in statuses.items() if status not in ("whole", "503"))
    outcome.goal("wrong answers", bad, 0)
    outcome.note(", ".join(f"{status} {n}" for status, n in sorted(statuses.items())))
    outcome.note(f"{rounds} rounds of {clients} bodies of {size / 1e6:.1f} MB")
    return outcome


async def _send(http: aiohttp.ClientSession, target: Target, body: bytes) -> str:
    """Send one body; return "whole" for a complete answer, else the failure."""
    reading = Reading()
    try:
        async with http.post(
            f"{target.url}/chat-stream",
            data=io.BytesIO(body),
            headers=target.headers,
            timeout=aiohttp.ClientTimeout(total=300),
        ) as response:
            reading.status = response.status
            reading.reads = [(0.0, await response.read())]
        if reading.status != 200:
            return str(reading.status)
        parse_answer(reading, AUGMENT).check(_SPEC)
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        return type(error).__name__
    except Damaged as error:
        return str(error)[:200]
    return "whole"
