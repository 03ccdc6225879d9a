"""What byok adds to an inline completion: python -m tools.bench.completions [ROUNDS].

The upstream takes 20 ms. Each round asks it directly, then byok, then byok again for
what was typed along meanwhile, then for the next edit of a model that is made for it;
the windows around the cursor are full.
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
_EDITOR = "byok:bench:zeta-2"
_LINE = "    total = total + fare(kind, count)  # another line of the file\n"


async def answered(request: web.Request) -> web.StreamResponse:
    """Read the question, take the time, stream an answer of a few tokens."""
    asked = json.loads(await request.read())
    await asyncio.sleep(SECONDS)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    said = _rewritten(asked["prompt"]) if "prompt" in asked else _SAID
    for word in (*said.split(" "), ""):
        choice = {"index": 0, "delta": {"content": f"{word} "}, "text": f"{word} "}
        await response.write(
            b"data: %s\n\n" % json.dumps({"choices": [choice]}).encode()
        )
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    await response.write(b"data: %s\n\ndata: [DONE]\n\n" % json.dumps(end).encode())
    return response


def _rewritten(prompt: str) -> str:
    """Return the region of a prompt of Zeta 2 with its first line changed."""
    region = prompt.partition("<<<<<<< CURRENT\n")[2].partition("=======\n")[0]
    return region.replace("<|user_cursor|>", "").replace("total", "sum", 1)


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
    edits: list[float] = []
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
            edit = {**body(number), "prefix": body(number)["prompt"], "model": _EDITOR}
            took, raw = await timed(post(f"{url}/next-edit-stream", edit))
            assert "sum = " in json.loads(raw)["next_edit"]["suggested_code"], raw
            edits.append(took)
    p50 = statistics.median
    return [
        f"the upstream alone   p50 {p50(direct):6.2f} ms",
        f"through byok         p50 {p50(through):6.2f} ms, "
        f"added {p50(through) - p50(direct):.2f} ms",
        f"typed along          p50 {p50(along):6.2f} ms",
        f"next edits           p50 {p50(edits):6.2f} ms",
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
        app.router.add_post("/v1/completions", answered)
        run(app)
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 300)
