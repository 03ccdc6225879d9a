"""One exchange with an upstream: headers, deadlines, the breaker."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx

from byok import __version__
from byok.dialects.base import Dialect
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.upstream.http_call import Timeouts
from byok.upstream.http_sender import Sender
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.transport import Transports
from tests.fakes.asker import Key
from tests.fakes.upstream import FakeUpstream

HASTY = Timeouts(first_byte=0.2, idle=0.2)


class Asked:
    """A sender, and the API that it is to ask."""

    def __init__(self, spec: UpstreamSpec, transports: Transports, key: str) -> None:
        self.key = Key(key)
        self.api = spec.api
        self.sender = Sender(spec, transports, self.key)

    def open(
        self, path: str, content: bytes | None = None, **headers: str
    ) -> AbstractAsyncContextManager[httpx.Response]:
        return self.sender.open(self.api, path, content, headers)


def sender(
    transports: Transports,
    url: str,
    *,
    pause: float = 30.0,
    key: str = "sk-1",
    dialect: Dialect = OpenAIChat(),  # noqa: B008 - it holds no state
    **fields: Any,
) -> Asked:
    spec = UpstreamSpec(
        "fake",
        (Api(dialect, url),),
        breaker_pause=pause,
        **{"headers": {"X-Own": "1"}, "timeouts": HASTY, **fields},
    )
    return Asked(spec, transports, key)


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


async def test_http_sender_adds_the_query_to_every_url(
    fake: FakeUpstream, transports: Transports
) -> None:
    asked = sender(transports, fake.url, query={"api-version": "2024-10-21", "a": "&"})
    async with asked.open("chat/completions", b"{}"):
        pass
    async with asked.open("models"):
        pass
    assert fake.queries == ["api-version=2024-10-21&a=%26"] * 2


class Versioned(OpenAIChat):
    """A dialect whose requests all need a header, with and without a key."""

    def headers(self, key: str) -> Mapping[str, str]:
        return {"X-Version": "2", "Accept": "a/b"} | ({"X-Key": key} if key else {})


async def test_headers_of_the_user_win_but_for_the_key(
    fake: FakeUpstream, transports: Transports
) -> None:
    own = {"x-version": "3", "x-key": "mine", "accept": "c/d"}
    asked = sender(transports, fake.url, dialect=Versioned(), headers=own)
    async with asked.open("chat/completions", b"{}"):
        pass
    found = {name: fake.headers[0][name] for name in ("x-version", "x-key", "Accept")}
    assert found == {"x-version": "3", "x-key": "sk-1", "Accept": "c/d"}
