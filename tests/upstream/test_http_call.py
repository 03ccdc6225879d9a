"""Calling a server: its key, the deadline for the head, redirects, the breaker."""

import httpx
import pytest

from byok.core.errors import NotReady, UpstreamUnreachable
from byok.upstream.http_call import (
    FAILURES,
    Callee,
    Caller,
    CircuitBreaker,
    Timeouts,
    hang_up,
)
from byok.upstream.transport import Route, Transports
from tests.fakes.asker import Key
from tests.fakes.clock import Clock
from tests.fakes.upstream import FakeUpstream, Script, dead_url


def head(key: str) -> httpx.Headers:
    return httpx.Headers({"Authorization": f"Bearer {key}"})


class Line:
    """A caller of one URL."""

    def __init__(
        self,
        transports: Transports,
        url: str,
        key: Key | None = None,
        route: Route | None = None,
    ) -> None:
        callee = Callee(
            "fake", url, timeouts=Timeouts(first_byte=0.2), route=route or Route()
        )
        self.clock = Clock()
        self.caller = Caller(
            callee,
            transports,
            key or Key("sk-1"),
            breaker=CircuitBreaker(60, upstream="fake", clock=self.clock),
        )
        self.url = url

    async def call(
        self,
        path: str = "x",
        content: bytes | None = b"{}",
        timeouts: Timeouts | None = None,
    ) -> int:
        """Return the status."""
        url = httpx.URL(f"{self.url}/{path}")
        response = await self.caller.call(url, content, head, timeouts=timeouts)
        await hang_up(response)
        return response.status_code


async def test_http_call_with_content_is_a_post(
    fake: FakeUpstream, transports: Transports
) -> None:
    line = Line(transports, fake.url)
    assert await line.call(content=b'{"a":1}') == 200
    assert await line.call("models", None) == 200
    assert fake.bodies == [b'{"a":1}']
    assert len(fake.list_headers) == 1


@pytest.mark.case("F05")
async def test_http_call_times_out_without_a_response_head(
    fake: FakeUpstream, transports: Transports
) -> None:
    fake.models_delay = 5.0
    with pytest.raises(UpstreamUnreachable, match="begin to answer") as caught:
        await Line(transports, fake.url).call("models", None)
    assert caught.value.code == "upstream_timeout"


async def test_http_call_circuit_breaker_opens_and_lets_a_probe_through(
    transports: Transports,
) -> None:
    route = Route(proxy=dead_url().removesuffix("/v1"))
    line = Line(transports, "http://model.test/v1", route=route)
    for _ in range(FAILURES):
        with pytest.raises(UpstreamUnreachable, match="the proxy cannot be reached"):
            await line.call()
    with pytest.raises(NotReady, match=r"^fake: the proxy cannot be .* in 60 s\."):
        await line.call()
    line.clock.now += 60
    with pytest.raises(UpstreamUnreachable):
        await line.call()


async def test_http_call_circuit_breaker_spares_a_local_server_that_is_down(
    transports: Transports,
) -> None:
    line = Line(transports, dead_url())
    for _ in range(FAILURES + 2):
        with pytest.raises(UpstreamUnreachable, match="nothing answers") as caught:
            await line.call()
        assert caught.value.hint.startswith("Is it running")


class Changing(Key):
    """A key source that finds another key after it was told to forget."""

    def forget(self) -> None:
        super().forget()
        self.key = "sk-2"


async def test_http_call_tries_a_changed_api_key_at_once(
    fake: FakeUpstream, transports: Transports
) -> None:
    fake.play(Script([b"{}"], status=401), Script([b"{}"]))
    key = Changing("sk-1")
    assert await Line(transports, fake.url, key).call() == 200
    sent = [headers["Authorization"] for headers in fake.headers]
    assert sent == ["Bearer sk-1", "Bearer sk-2"]
    assert key.forgotten == 1
