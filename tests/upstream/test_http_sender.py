"""One exchange with an upstream: headers, deadlines, the breaker."""

import asyncio
from typing import Any

import pytest

from byok import __version__
from byok.dialects.registry import DIALECTS
from byok.errors import UpstreamError, UpstreamRefused
from byok.upstream.http_sender import Sender, UpstreamSpec
from byok.upstream.timeouts import Timeouts
from byok.upstream.transport import Transports
from tests.fakes.asker import Key
from tests.fakes.upstream import FakeUpstream, Script

HASTY = Timeouts(first_byte=0.2, idle=0.2)


def sender(
    transports: Transports, url: str, *, pause: float = 30.0, **fields: Any
) -> Sender:
    spec = UpstreamSpec(
        "fake",
        url,
        DIALECTS["openai_chat"],
        timeouts=HASTY,
        breaker_pause=pause,
        headers={"X-Own": "1"},
        **fields,
    )
    return Sender(spec, transports, Key("sk-1"))


async def refused(asked: Sender, path: str = "chat/completions") -> UpstreamError:
    with pytest.raises(UpstreamError) as caught:
        async with asked.open(path, b"{}"):
            pass
    return caught.value


async def test_http_sender_sets_a_content_type_on_post_only(
    fake: FakeUpstream, transports: Transports
) -> None:
    asked = sender(transports, fake.url)
    async with asked.open("chat/completions", b'{"a":1}') as response:
        assert response.status_code == 200
    async with asked.open("models"):
        pass
    assert fake.requests == [{"a": 1}]
    assert fake.headers[0]["Content-Length"] == "7"
    for headers in (fake.headers[0], fake.list_headers[0]):
        assert headers["Host"] == fake.url.split("/")[2]
        assert "Transfer-Encoding" not in headers
        assert headers["Authorization"] == "Bearer sk-1"
        assert headers["x-own"] == "1"
        assert headers["User-Agent"] == f"byok/{__version__}"
        assert headers["Accept-Encoding"] == "identity"
    assert fake.headers[0]["Content-Type"] == "application/json"
    assert "Content-Type" not in fake.list_headers[0]


async def test_http_sender_reports_a_refusal_without_body_by_its_status(
    fake: FakeUpstream, transports: Transports
) -> None:
    fake.play(Script([b'{"error":'], status=503, end="hang"))
    async with asyncio.timeout(10):
        error = await refused(sender(transports, fake.url))
    assert isinstance(error, UpstreamRefused)
    assert error.upstream_status == 503
    assert "no reason given" in str(error)


async def test_http_sender_adds_the_query_to_every_url(
    fake: FakeUpstream, transports: Transports
) -> None:
    asked = sender(transports, fake.url, query={"api-version": "2024-10-21", "a": "&"})
    async with asked.open("chat/completions", b"{}"):
        pass
    async with asked.open("models"):
        pass
    assert fake.queries == ["api-version=2024-10-21&a=%26"] * 2


def test_http_sender_keeps_the_base_of_a_path_beside_the_api() -> None:
    for base, beside in (
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/infill"),
        ("https://host/llama/v1", "https://host/llama/infill"),
        ("https://host/llama", "https://host/llama/infill"),
        ("https://v1/v1", "https://v1/infill"),
    ):
        spec = UpstreamSpec("fake", base, DIALECTS["openai_chat"])
        assert spec.address("/infill") == beside
        assert spec.address("models") == f"{base}/models"
