"""Streamed answers: how they end, and how one that fails says so."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp
import pytest

from byok.core.daemon.token import read_token
from byok.core.errors import UpstreamGarbled
from byok.core.events import Finish, FinishReason, StreamEvent, TextDelta
from byok.server.run import listening
from byok.upstream.base import Plan
from byok.upstream.demo import DemoUpstream
from byok.upstream.router import Router
from byok.wiring.services import Services
from tests.fakes.daemon import Editor, parts_of, running, settings_for
from tests.fakes.upstream import FakeUpstream, Script, delta, event

FINISH = Finish(FinishReason.STOP)


async def test_streamed_answer_that_fails_says_so_in_its_text_and_in_its_last_line(
    fake: FakeUpstream,
) -> None:
    fake.play(Script([delta(content="One"), event({"error": {"message": "broke"}})]))
    async with running(settings_for(fake.url)) as editor:
        reply = await editor.chat()
    assert reply.status == 200
    assert reply.text.startswith("One\n[byok] fake: ")
    assert reply.last["stop_reason"] == 0
    assert set(reply.last["error"]) == {"code", "message", "request_id"}
    assert reply.last["error"]["code"] == "upstream_failed"
    assert "broke" in reply.last["error"]["message"]
    assert [n["content"] for n in reply.nodes if n["type"] == 0] == ["One"]


class Odd(DemoUpstream):
    """Says two things, and ends in a way of its own."""

    def __init__(self, *end: StreamEvent, error: Exception | None = None) -> None:
        super().__init__("demo")
        self._end = end
        self._error = error

    async def send(self, plan: Plan) -> AsyncGenerator[list[StreamEvent], None]:
        yield [TextDelta("One ")]
        yield [TextDelta("two."), *self._end]
        if self._error is not None:
            raise self._error


NO_END = Odd()
LATE_FAILURE = Odd(FINISH, error=UpstreamGarbled("late"))
LATE_FAULT = Odd(FINISH, error=KeyError("late"))


@pytest.mark.parametrize(
    ("path", "upstream"),
    [
        pytest.param("/chat-stream", NO_END, id="streamed without a last word"),
        pytest.param("/chat-stream", LATE_FAILURE, id="streamed with a late failure"),
        pytest.param("/chat-stream", LATE_FAULT, id="streamed with a late fault"),
        pytest.param("/chat", NO_END, id="whole without a last word"),
        pytest.param("/chat", LATE_FAILURE, id="whole with a late failure"),
    ],
)
async def test_an_answer_that_is_whole_ends_once_and_well(
    path: str, upstream: Odd
) -> None:
    settings, paths, redactor, open_services = parts_of(upstream="demo")

    @asynccontextmanager
    async def odd_services() -> AsyncIterator[Services]:
        async with open_services() as services:
            router = Router({"demo": upstream}, services.catalog)
            yield replace(services, router=router)

    async with (
        listening(settings, paths, redactor, odd_services) as daemon,
        aiohttp.ClientSession() as http,
    ):
        editor = Editor(daemon, daemon.services, read_token(paths.token), http)
        reply = await editor.post(path, {"message": "x"})
    assert reply.text == "One two."
    assert [line["stop_reason"] for line in reply.lines if line["stop_reason"]] == [1]
    assert "error" not in reply.last
