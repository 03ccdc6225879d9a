"""The stream of live requests over HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from byok.server.dashboard import api
from byok.server.http.deadlines import Timing
from byok.server.http.stream import OpenStream
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.dashboard import Page, signed_in
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import FakeUpstream, Script, delta, refusal


@dataclass
class Stream:
    """The lines of a stream that is open."""

    response: aiohttp.ClientResponse

    async def line(self) -> Any:
        """Return the next line, {} for one that only keeps the stream alive."""
        raw = await asyncio.wait_for(self.response.content.readline(), PATIENCE)
        assert raw.endswith(b"\n")
        return json.loads(raw)

    async def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read until a request is told for which that is true."""
        for _ in range(100):
            for row in (await self.line()).get("rows", []):
                if wanted(row):
                    return dict(row)
        raise AssertionError("it was never told")

    async def last(self) -> Any:
        """Read until the end; return the last line."""
        text = await asyncio.wait_for(self.response.text(), PATIENCE)
        return json.loads(text.splitlines()[-1])


@asynccontextmanager
async def looking(page: Page) -> AsyncIterator[Stream]:
    """Open a stream, and read what is there already."""
    async with page.opened("live", background=True) as response:
        assert response.status == 200
        stream = Stream(response)
        first = await stream.line()
        assert first["whole"] is True
        yield stream


async def test_a_failure_is_told_in_the_language_of_the_page(
    fake: FakeUpstream,
) -> None:
    fake.play(refusal(400, "no such thing"))
    async with running(settings_for(fake.url, model="fake-model")) as editor:
        await editor.chat()
        page = await signed_in(editor)
        told = {}
        for page.language in ("en", "zh-CN"):
            async with page.opened("live", background=True) as response:
                [row] = (await Stream(response).line())["rows"]
                told[page.language] = row["message"]
    assert told["en"].isascii()
    assert not told["zh-CN"].isascii()
    assert "no such thing" in told["zh-CN"]  # the upstream's own words


async def test_a_request_is_told_as_it_streams_and_when_it_ends(
    fake: FakeUpstream,
) -> None:
    more, end = asyncio.Event(), asyncio.Event()
    first, second = delta(content="a"), delta(content="b")
    fake.play(Script([first, more, second, end, delta("stop")]))
    async with running(settings_for(fake.url, model="fake-model")) as editor:
        page = await signed_in(editor)
        async with looking(page) as stream:
            asking = asyncio.ensure_future(editor.chat(conversation_id="talk"))
            told = await stream.until(lambda row: row.get("outcome") == "open")
            assert (told["endpoint"], told["conversation"]) == ("/chat-stream", "talk")
            more.set()
            grown = await stream.until(lambda row: "outcome" not in row)
            assert grown["request_id"] == told["request_id"]
            assert grown["sent"] > 0
            assert grown["received"] > 0
            end.set()
            ended = await stream.until(lambda row: row.get("outcome") == "ok")
            answer = await asking
            assert ended["sent"] == len(answer.raw)
            assert (ended["model"], ended["attempts"]) == ("fake-model", 1)


async def test_the_page_and_commands_are_not_told(editor: Editor, page: Page) -> None:
    async with looking(page) as stream:
        await page.call("daemon")
        await editor.post("/byok/daemon")
        asked = await editor.chat()
        row = await stream.until(lambda row: True)
        while row.get("outcome") != "ok":
            assert row.get("endpoint", "/chat-stream") == "/chat-stream"
            row = await stream.until(lambda row: True)
        assert row["request_id"] == asked.headers["X-Request-Id"]


async def test_silence_has_a_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_HEARTBEAT_SECONDS", 0.05)
    async with running(upstream="demo") as editor:
        page = await signed_in(editor)
        async with looking(page) as stream:
            assert await stream.line() == {}
            assert await stream.line() == {}
            await page.call("sign-out")
            assert (await stream.last()) == {"end": "session"}


async def test_the_stop_of_the_daemon_is_told_and_not_held_up() -> None:
    patient = Timing(grace=60, last_words=60)
    async with running(upstream="demo", timing=patient) as editor:
        page = await signed_in(editor)
        async with looking(page) as stream:
            await asyncio.wait_for(editor.daemon.stop(), PATIENCE)
            assert await stream.last() == {"end": "stopping"}
        async with looking_too_late(page) as stream:
            assert await stream.last() == {"end": "stopping"}


@asynccontextmanager
async def looking_too_late(page: Page) -> AsyncIterator[Stream]:
    async with page.opened("live", background=True) as response:
        yield Stream(response)


async def test_a_page_takes_no_place_of_a_client() -> None:
    limits = {"limits": {"streams": 1, "waiting": 0}}
    async with running(limits, upstream="demo") as editor:
        page = await signed_in(editor)
        async with looking(page), looking(page):
            assert (await editor.chat()).status == 200


class Deaf(OpenStream):
    """A stream to a page that reads nothing: writes wait until somebody hangs up."""

    def __init__(self, *of: Any, **options: Any) -> None:
        super().__init__(*of, **options)
        self._gone = asyncio.Event()

    async def write(self, data: bytes) -> None:
        """Wait as a write does whose buffers are full."""
        await super().write(data)
        self._stuck_since = self._clock()
        await self._gone.wait()
        raise ConnectionResetError

    def hang_up(self) -> None:
        """Let the write fail."""
        self._gone.set()
        super().hang_up()


async def test_a_page_that_does_not_read_is_hung_up_on_when_the_daemon_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(api, "OpenStream", Deaf)
    patient = Timing(grace=60, last_words=60)
    async with running(upstream="demo", timing=patient) as editor:
        page = await signed_in(editor)
        async with looking(page) as stream:
            await editor.chat()
            await asyncio.wait_for(editor.daemon.stop(), PATIENCE)
            with pytest.raises(aiohttp.ClientError):
                await stream.last()
