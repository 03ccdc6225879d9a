import gzip

import httpx
import pytest

from byok.core.errors import UpstreamGarbled
from byok.search.vectors.team.server import MOST_BYTES, BoundedTransport
from tests.fakes.lister import CannedTransport

REQUEST = httpx.Request("GET", "https://qdrant.example/collections")


def transport(answer: httpx.Response, key: str = "") -> BoundedTransport:
    return BoundedTransport(CannedTransport(lambda request: answer), lambda: key)


async def test_an_answer_is_read_and_loses_its_headers() -> None:
    headers = {"content-type": "application/json", "location": "/x", "retry-after": "x"}
    given = httpx.Response(302, headers=headers, content=b"{}")
    response = await transport(given).handle_async_request(REQUEST)
    assert (response.status_code, response.content) == (302, b"{}")
    assert response.headers.keys() == {"content-type", "content-length"}
    assert not response.has_redirect_location


@pytest.mark.parametrize("more", [0, 1])
async def test_the_largest_answer(more: int) -> None:
    size = MOST_BYTES + more
    sending = transport(httpx.Response(200, content=b" " * size))
    if not more:
        response = await sending.handle_async_request(REQUEST)
        assert len(response.content) == size
        return
    with pytest.raises(UpstreamGarbled, match="larger"):
        await sending.handle_async_request(REQUEST)


async def test_a_compressed_answer_is_not_expanded() -> None:
    headers = {"content-encoding": "GZIP"}
    given = httpx.Response(200, headers=headers, content=gzip.compress(b"{}"))
    with pytest.raises(UpstreamGarbled, match="compressed"):
        await transport(given).handle_async_request(REQUEST)


@pytest.mark.parametrize("key", ["", "secret-key"])
async def test_the_key_of_now_is_sent(key: str) -> None:
    request = httpx.Request("GET", REQUEST.url, headers={"user-agent": "python/3"})
    await transport(httpx.Response(200), key).handle_async_request(request)
    assert request.headers.get("api-key", "") == key
    assert request.headers["user-agent"].startswith("byok/")
    assert request.headers["accept-encoding"] == "identity"
