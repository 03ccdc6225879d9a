"""The script that ends service workers of other programs at byok's address."""

import pytest

from tests.fakes.daemon import running
from tests.fakes.raw import put, request

BARE = {"method": b"GET", "token": b"", "kind": b"", "body": b"", "length": b""}
ASKS = b"Service-Worker: script"


@pytest.mark.parametrize(
    "target", ["/worker.js", "/ui/worker.js", "/ui/api/x", "/", "/chat-stream"]
)
@pytest.mark.case("B143")
async def test_a_browser_that_asks_for_a_worker_gets_its_end(target: str) -> None:
    async with running(upstream="demo") as editor:
        sent = request(
            ASKS, b"Sec-Fetch-Site: same-origin", target=target.encode(), **BARE
        )
        answer = await put(editor, sent)
    assert answer.status == 200
    assert answer.header("content-type") == "text/javascript; charset=utf-8"
    assert answer.header("cache-control") == "no-store"
    assert b"registration.unregister()" in answer.body
    assert b"fetch" not in answer.body


@pytest.mark.parametrize(
    ("lines", "parts", "status"),
    [
        ([b"Service-Worker: x"], {}, 401),
        ([], {}, 401),
        ([ASKS], {"method": b"POST"}, 401),
        ([ASKS, b"Origin: http://127.0.0.1:1"], {}, 403),
        ([ASKS, b"Sec-Fetch-Site: cross-site"], {}, 403),
        ([ASKS], {"host": b"Host: evil.example"}, 421),
    ],
    ids=["another value", "none", "a POST", "an origin", "another site", "a host"],
)
async def test_nothing_else_gets_it(
    lines: list[bytes], parts: dict[str, bytes], status: int
) -> None:
    async with running(upstream="demo") as editor:
        sent = request(*lines, target=b"/worker.js", **{**BARE, **parts})
        answer = await put(editor, sent)
    assert answer.status == status
