"""Clients that stop in the middle: of a head, of a body, of reading an answer."""

import asyncio

import pytest

from byok.server.http.deadlines import Timing
from tests.fakes.daemon import running, settings_for
from tests.fakes.patience import PATIENCE
from tests.fakes.raw import connected, filled, request
from tests.fakes.upstream import FakeUpstream, Script, answer, delta

QUICK = Timing(
    head_after=0.2, grace=0.3, last_words=0.4, head=1.0, body_gap=1.0, patience=0.4
)


@pytest.mark.parametrize(
    "half",
    [b"", b"POST /chat-stream HT", b"POST /chat HTTP/1.1\r\nHost: x\r\nX-Half: "],
    ids=["nothing", "half a line", "half a head"],
)
@pytest.mark.case("F17")
async def test_deadline_of_a_request_head(half: bytes) -> None:
    async with (
        running(upstream="demo", timing=QUICK) as editor,
        connected(editor.daemon.port) as connection,
    ):
        await connection.send(half)
        assert await connection.rest() == b""
        assert (await editor.chat("Still there?")).last["stop_reason"] == 1


async def test_deadline_ends_with_a_complete_head() -> None:
    async with (
        running(upstream="demo", timing=QUICK) as editor,
        connected(editor.daemon.port) as connection,
    ):
        whole = filled(request(), editor.daemon.port, editor.token)
        await connection.send(whole)
        assert (await connection.answer()).status == 200
        await asyncio.sleep(2 * QUICK.head)
        await connection.send(whole)
        assert (await connection.answer()).status == 200


@pytest.mark.case("F17")
async def test_deadline_of_a_request_body_is_408() -> None:
    async with (
        running(upstream="demo", timing=QUICK) as editor,
        connected(editor.daemon.port) as connection,
    ):
        half = request(body=b'{"message": "ha', length=b"Content-Length: 100")
        await connection.send(filled(half, editor.daemon.port, editor.token))
        refused = await connection.answer()
        assert (refused.status, refused.code) == (408, "body_timeout")


@pytest.mark.case("F16")
async def test_deadline_of_a_client_that_does_not_read(
    fake: FakeUpstream,
) -> None:
    flood = [delta(content="x" * 60_000)] * 250
    fake.play(Script(flood, end="hang"), answer("Fine."))
    settings = {**settings_for(fake.url), "limits": {"streams": 1, "waiting": 0}}
    async with (
        running(settings, timing=QUICK) as editor,
        connected(editor.daemon.port) as connection,
    ):
        asked = request(target=b"/chat-stream", body=b'{"message": "Flood."}')
        await connection.send(filled(asked, editor.daemon.port, editor.token))
        await asyncio.wait_for(fake.hung_up.wait(), PATIENCE)
        assert (await editor.chat("And now?")).text == "Fine."
