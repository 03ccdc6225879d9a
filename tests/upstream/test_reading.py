"""Reading an answer: nothing that came before a failure is lost."""

from collections.abc import AsyncIterator, Iterator

import aiohttp
import httpx
import pytest

from byok.errors import UpstreamError, UpstreamGarbled, UpstreamUnreachable
from byok.events import StreamEvent, TextDelta
from byok.upstream.reading import at_end, drain, limited, taken


class Broken:
    """A stage that gives one event and then fails."""

    def feed(self, data: bytes, /) -> Iterator[StreamEvent]:
        yield TextDelta(data.decode())
        raise UpstreamGarbled("broken", code="upstream_not_json")

    def flush(self) -> Iterator[StreamEvent]:
        yield TextDelta("rest")


def test_events_before_a_failure_are_kept() -> None:
    batch, failure = taken(Broken(), b"text")
    assert batch == [TextDelta("text")]
    assert isinstance(failure, UpstreamGarbled)


def test_no_data_is_the_end() -> None:
    assert taken(Broken(), b"") == ([TextDelta("rest")], None)


HALF = UpstreamGarbled("x", code="upstream_not_json")
EMPTY = UpstreamGarbled("x", code="upstream_empty")
LOST = UpstreamUnreachable("gone")


@pytest.mark.parametrize(
    ("lost", "failure", "code"),
    [
        pytest.param(LOST, HALF, LOST.code, id="the connection broke"),
        pytest.param(None, HALF, "upstream_cut", id="half an event is a cut"),
        pytest.param(None, EMPTY, "upstream_empty", id="others stay what they are"),
    ],
)
def test_the_end_is_told_by_its_cause(
    lost: UpstreamError | None, failure: UpstreamError, code: str
) -> None:
    assert at_end(lost, failure).code == code


async def body(*pieces: bytes, error: Exception | None = None) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
    if error:
        raise error


@pytest.mark.parametrize("error", [None, aiohttp.ClientPayloadError("reset")])
async def test_draining_ends_with_the_answer_or_its_connection(
    error: Exception | None,
) -> None:
    left = body(b"\n", error=error)
    await drain(lambda: anext(left, b""))
    assert [piece async for piece in left] == []


async def test_a_body_is_read_to_its_limit_or_refused() -> None:
    response = httpx.Response(500, content=body(b"x" * 10, b"y" * 10))
    assert await limited(response, 12, cut=True) == b"x" * 10 + b"yy"
    response = httpx.Response(200, content=body(b"x" * 10, b"y" * 10))
    with pytest.raises(UpstreamGarbled, match="too large"):
        await limited(response, 12)
