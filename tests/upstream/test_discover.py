"""Which local servers answer."""

import httpx
import pytest

from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.upstream.catalog import find_answering
from byok.upstream.spec import Api
from byok.upstream.transport import Transports
from tests.fakes.scripted import Canned
from tests.fakes.upstream import FakeUpstream, dead_url


def api(url: str) -> Api:
    return Api(OpenAIChat(), url)


async def test_discover_names_servers_that_answer_in_order(fake: FakeUpstream) -> None:
    transports = Transports()
    async with FakeUpstream() as other:
        urls = {"b": other.url, "dead": dead_url(), "a": fake.url}
        candidates = {name: api(url) for name, url in urls.items()}
        assert await find_answering(transports, candidates, seconds=5) == ["b", "a"]
        await transports.close()


async def test_discover_leaves_out_a_slow_server(fake: FakeUpstream) -> None:
    transports = Transports()
    fake.models_delay = 60
    assert await find_answering(transports, {"slow": api(fake.url)}, seconds=0.05) == []
    await transports.close()


@pytest.mark.parametrize(
    ("status", "body", "found"),
    [
        pytest.param(200, b'{"data": []}', True, id="an object"),
        pytest.param(200, b"<html>", False, id="a web page"),
        pytest.param(302, b"{}", False, id="a redirect"),
    ],
)
async def test_discover_counts_only_a_list_of_models(
    status: int, body: bytes, found: bool
) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(status, content=body)

    names = await find_answering(Canned(answer), {"x": api("http://127.0.0.1:1/v1")})
    assert names == (["x"] if found else [])
    assert asked == ["http://127.0.0.1:1/v1/models"]
