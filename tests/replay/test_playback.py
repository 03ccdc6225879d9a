"""Transports that play a capture, and reach nobody."""

import httpx
import pytest

from byok.features.capture.capture import Capture, Piece
from byok.record import Head, Hop
from byok.replay.playback import PlaybackTransports
from byok.upstream.transport import Route, body_of

URL = "https://api.example/v1/chat/completions"


def attempt(number: int, body: str, *reads: str, status: str = "200") -> list[Piece]:
    head = Head(status, (("Content-Type", "x/y"), ("Content-Encoding", "gzip")))
    return [
        Piece(0, Hop.TO_UPSTREAM, number, body),
        Piece(0, Hop.TO_UPSTREAM, number, head=Head(f"POST {URL}?key=[redacted]")),
        *([Piece(0, Hop.FROM_UPSTREAM, number, head=head)] if status else []),
        *(Piece(0, Hop.FROM_UPSTREAM, number, read) for read in reads),
    ]


def transport(*pieces: Piece) -> httpx.AsyncBaseTransport:
    return PlaybackTransports(Capture({}, pieces)).by(Route())


def post(body: str, url: str = URL) -> httpx.Request:
    return httpx.Request("POST", url, content=body.encode())


async def test_playback_gives_the_reads_as_they_came() -> None:
    player = transport(*attempt(1, "{}", "one", "two"))
    response = await player.handle_async_request(post("{}"))
    assert response.status_code == 200
    assert dict(response.headers) == {"content-type": "x/y"}
    body = body_of(response)
    assert [await body.read() for _ in range(3)] == [b"one", b"two", b""]
    assert body.is_at_end


async def test_playback_gives_each_answer_once_to_the_likest_request() -> None:
    player = transport(*attempt(1, "short", "1"), *attempt(2, "l" * 90, "2"))
    for body, expected in (("m" * 80, b"2"), ("m" * 80, b"1")):
        response = await player.handle_async_request(post(body))
        assert await response.aread() == expected
    assert (await player.handle_async_request(post(""))).status_code == 404


async def test_playback_knows_nothing_else() -> None:
    player = transport(*attempt(1, "{}", "one"))
    other = post("{}", "https://api.example/v1/embeddings")
    assert (await player.handle_async_request(other)).status_code == 404
    listing = httpx.Request("GET", URL)
    assert (await player.handle_async_request(listing)).status_code == 404


async def test_playback_of_no_answer_is_no_connection() -> None:
    player = transport(*attempt(1, "{}", status=""))
    with pytest.raises(httpx.ConnectError):
        await player.handle_async_request(post("{}"))
