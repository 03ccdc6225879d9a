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
_ANSWER = "return total * 2\n"
_EDITOR = "byok:bench:zeta-2"
_LINE = "    total = total + fare(kind, count)  # another line of the file\n"


async def answer_completion(request: web.Request) -> web.StreamResponse:
    """Wait as long as a model takes, then stream an answer of a few tokens."""
    question = json.loads(await request.read())
    await asyncio.sleep(SECONDS)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    answer = _rewrite(question["prompt"]) if "prompt" in question else _ANSWER
    for word in (*answer.split(" "), ""):
        choice = {"index": 0, "delta": {"content": f"{word} "}, "text": f"{word} "}
        await response.write(
            b"data: %s\n\n" % json.dumps({"choices": [choice]}).encode()
        )
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    await response.write(b"data: %s\n\ndata: [DONE]\n\n" % json.dumps(end).encode())
    return response


def _rewrite(prompt: str) -> str:
    """Return the region of a prompt of Zeta 2 with its first line changed."""
    region = prompt.partition("<<<<<<< CURRENT\n")[2].partition("=======\n")[0]
    return region.replace("<|user_cursor|>", "").replace("total", "sum", 1)


def body(number: int, typed: str = "") -> dict[str, Any]:
    """Return a request at a new cursor position, so that no cache has its answer."""
    prefix = _LINE * 120 + f"def fare_{number}():\n    " + typed
    return {"prompt": prefix[-8000:], "suffix": "\n" + _LINE * 60, "path": "a.py"}


async def measure_time(asking: Awaitable[bytes]) -> tuple[float, bytes]:
    """Return the milliseconds of an answer, and the answer."""
    started = time.perf_counter()
    answer = await asking
    return (time.perf_counter() - started) * 1000, answer


async def measure_all(upstream: str, url: str, token: str, rounds: int) -> list[str]:
    """Measure all kinds in turns; return the lines of the report."""
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
            direct.append((await measure_time(post(chat, question)))[0])
            for typed, times in (("", through), ("return ", along)):
                took, raw = await measure_time(post(completion, body(number, typed)))
                text = "return total * 2"[len(typed) :]
                assert json.loads(raw)["text"].strip() == text, raw
                times.append(took)
            edit = {**body(number), "prefix": body(number)["prompt"], "model": _EDITOR}
            took, raw = await measure_time(post(f"{url}/next-edit-stream", edit))
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
    """Start the upstream and byok, measure, and print the report."""
    with (
        processes.start_module("tools.bench.completions", "serve") as upstream,
        processes.byok(upstream.url) as daemon,
    ):
        target = daemon.target
        report = measure_all(upstream.url, target.url, target.token, rounds)
        print("\n".join(asyncio.run(report)))


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", answer_completion)
        app.router.add_post("/v1/completions", answer_completion)
        run(app)
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 300)
