"""What byok adds to an inline completion: python -m tools.bench.completions [ROUNDS].

The upstream takes 20 ms. Each round asks it directly, then byok, then byok again for
what was typed along meanwhile; the windows around the cursor are full.
"""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable
from typing import Any

import aiohttp
from aiohttp import web

from tools.bench import processes
from tools.bench.mock import run

SECONDS = 0.02
_SAID = "return total * 2\n"
_LINE = "    total = total + fare(kind, count)  # another line of the file\n"


async def answered(request: web.Request) -> web.StreamResponse:
    """Read the question, take the time, stream an answer of a few tokens."""
    await request.read()
    await asyncio.sleep(SECONDS)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for word in (*_SAID.split(" "), ""):
        choice = {"index": 0, "delta": {"content": f"{word} "}, "finish_reason": None}
        await response.write(
            b"data: %s\n\n" % json.dumps({"choices": [choice]}).encode()
        )
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    await response.write(b"data: %s\n\ndata: [DONE]\n\n" % json.dumps(end).encode())
    return response


def body(number: int, typed: str = "") -> dict[str, Any]:
    """Write a request whose place nobody asked about before."""
    before = _LINE * 120 + f"def fare_{number}():\n    " + typed
    return {"prompt": before[-8000:], "suffix": "\n" + _LINE * 60, "path": "a.py"}


async def timed(asking: Awaitable[bytes]) -> tuple[float, bytes]:
    """Return the milliseconds of an answer, and the answer."""
    started = time.perf_counter()
    answer = await asking
    return (time.perf_counter() - started) * 1000, answer


async def measured(upstream: str, url: str, token: str, rounds: int) -> list[str]:
    """Ask in turns; return what to tell."""
    direct: list[float] = []
    through: list[float] = []
    along: list[float] = []
    headers = {"Authorization": f"Bearer {token}", "X-Request-Session-Id": "bench"}
    question = {"model": "mock", "messages": [{"role": "user", "content": _LINE * 180}]}

    async with aiohttp.ClientSession() as http:

        async def post(address: str, sent: Any) -> bytes:
            async with http.post(address, json=sent, headers=headers) as response:
                return await response.read()

        chat, completion = f"{upstream}/v1/chat/completions", f"{url}/completion"
        for number in range(rounds):
            direct.append((await timed(post(chat, question)))[0])
            for typed, times in (("", through), ("return ", along)):
                took, raw = await timed(post(completion, body(number, typed)))
                text = "return total * 2"[len(typed) :]
                assert json.loads(raw)["text"].strip() == text, raw
                times.append(took)
    p50 = statistics.median
    return [
        f"the upstream alone   p50 {p50(direct):6.2f} ms",
        f"through byok         p50 {p50(through):6.2f} ms, "
        f"added {p50(through) - p50(direct):.2f} ms",
        f"typed along          p50 {p50(along):6.2f} ms",
    ]


def main(rounds: int) -> None:
    """Start both, measure, tell."""
    with (
        processes.started("tools.bench.completions", "serve") as upstream,
        processes.byok(upstream.url) as daemon,
    ):
        target = daemon.target
        told = measured(upstream.url, target.url, target.token, rounds)
        print("\n".join(asyncio.run(told)))


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", answered)
        run(app)
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 300)
