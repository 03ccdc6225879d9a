"""Reading an answer: nothing that came before a failure is lost."""

from collections.abc import AsyncIterator, Iterator

import aiohttp
import httpx
import pytest

from byok.core.errors import (
    UpstreamEmpty,
    UpstreamError,
    UpstreamGarbled,
    UpstreamNotJson,
    UpstreamUnreachable,
)
from byok.core.events import StreamEvent, TextDelta
from byok.upstream.http_call import (
    Timeouts,
    at_end,
    describing_headers,
    drain,
    feed_read,
    hang_up,
    pass_on,
    read_limited,
    read_to_end,
)
from byok.upstream.transport import Route, Transports
from tests.fakes.upstream import FakeUpstream, Script


class Broken:
    """A stage that gives one event and then fails."""

    def feed(self, data: bytes, /) -> Iterator[StreamEvent]:
        yield TextDelta(data.decode())
        raise UpstreamNotJson("broken")

    def flush(self) -> Iterator[StreamEvent]:
        yield TextDelta("rest")


def test_http_body_keeps_events_before_a_failure() -> None:
    batch, failure = feed_read(Broken(), b"text")
    assert batch == [TextDelta("text")]
    assert isinstance(failure, UpstreamGarbled)


def test_http_body_without_data_ends() -> None:
    assert feed_read(Broken(), b"") == ([TextDelta("rest")], None)


HALF = UpstreamNotJson("x")
EMPTY = UpstreamEmpty("x")
LOST = UpstreamUnreachable("gone")


@pytest.mark.parametrize(
    ("lost", "failure", "code"),
    [
        pytest.param(LOST, HALF, LOST.code, id="the connection broke"),
        pytest.param(None, HALF, "upstream_cut", id="half an event is a cut"),
        pytest.param(None, EMPTY, "upstream_empty", id="others stay what they are"),
    ],
)
def test_http_body_reports_the_cause_of_its_end(
    lost: UpstreamError | None, failure: UpstreamError, code: str
) -> None:
    assert at_end(lost, failure).code == code


async def body(*pieces: bytes, error: Exception | None = None) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
    if error:
        raise error


@pytest.mark.parametrize("error", [None, aiohttp.ClientPayloadError("reset")])
async def test_http_body_drain_ends_with_the_answer_or_its_connection(
    error: Exception | None,
) -> None:
    left = body(b"\n", error=error)
    await drain(lambda: anext(left, b""))
    assert [piece async for piece in left] == []


async def test_a_body_is_read_to_its_limit_or_refused() -> None:
    response = httpx.Response(500, content=body(b"x" * 10, b"y" * 10))
    assert await read_limited(response, 12, cut=True) == b"x" * 10 + b"yy"
    response = httpx.Response(200, content=body(b"x" * 10, b"y" * 10))
    with pytest.raises(UpstreamGarbled, match="too large"):
        await read_limited(response, 12)


def test_http_body_passed_on_keeps_only_content_headers() -> None:
    headers = {"CONTENT-TYPE": "a/b", "Content-Encoding": "br", "Set-Cookie": "c=d"}
    given = describing_headers(httpx.Response(200, headers=headers))
    assert given == {"content-type": "a/b", "content-encoding": "br"}
    assert describing_headers(httpx.Response(200)) == {}


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (Script([b"one", 0.05, b"two"]), ""),
        (Script([b"one", 0.05, b"two"], end="reset"), "box: the connection"),
        (Script([b"one", 0.05, b"two"], end="hang"), "box: it fell silent"),
    ],
    ids=["whole", "broken", "silent"],
)
async def test_http_body_reads_come_as_they_are_until_the_answer_breaks(
    fake: FakeUpstream, script: Script, told: str
) -> None:
    fake.play(script)
    transports, reads = Transports(), []
    request = httpx.Request("POST", f"{fake.url}/x", content=b"{}")
    response = await transports.by(Route()).handle_async_request(request)
    failure = ""
    try:
        async for data in pass_on(response, "box", fake.url, Timeouts(idle=0.2)):
            reads.append(data)
    except UpstreamUnreachable as error:
        failure = str(error)
    await hang_up(response)
    await transports.close()
    assert reads == [b"one", b"two"]
    assert failure.startswith(told)
    assert bool(failure) is bool(told)


async def _reads(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def test_http_body_joins_reads_up_to_a_limit() -> None:
    assert await read_to_end(_reads(), 0) == b""
    assert await read_to_end(_reads(b"ab", b"cd"), 4) == b"abcd"
    with pytest.raises(UpstreamGarbled, match="too large"):
        await read_to_end(_reads(b"ab", b"cd", b"e"), 4)
