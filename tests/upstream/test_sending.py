"""One exchange with an upstream: headers, deadlines, the breaker."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from byok import __version__
from byok.dialects.named import DIALECTS
from byok.errors import NotReady, UpstreamError, UpstreamRefused, UpstreamUnreachable
from byok.upstream.breaker import FAILURES
from byok.upstream.patience import Patience
from byok.upstream.sending import Sender, UpstreamSpec
from byok.upstream.transport import Transports
from tests.fakes.upstream import FakeUpstream, Script
from tests.upstream.test_client import Key
from tests.upstream.test_discover import dead_url

HASTY = Patience(first=0.2, silence=0.2)


@pytest.fixture
async def transports() -> AsyncIterator[Transports]:
    made = Transports()
    yield made
    await made.close()


def sender(transports: Transports, url: str, *, pause: float = 30.0) -> Sender:
    spec = UpstreamSpec(
        "fake",
        url,
        DIALECTS["openai_chat"],
        patience=HASTY,
        breaker_pause=pause,
        headers={"X-Own": "1"},
    )
    return Sender(spec, transports, Key("sk-1"))


async def refused(asked: Sender, path: str = "chat/completions") -> UpstreamError:
    with pytest.raises(UpstreamError) as caught:
        async with asked.opened(path, b"{}"):
            pass
    return caught.value


async def test_a_post_has_a_type_and_a_get_has_none(
    fake: FakeUpstream, transports: Transports
) -> None:
    asked = sender(transports, fake.url)
    async with asked.opened("chat/completions", b'{"a":1}') as response:
        assert response.status_code == 200
    async with asked.opened("models"):
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


@pytest.mark.case("F05")
async def test_a_head_that_does_not_come_is_given_up(
    fake: FakeUpstream, transports: Transports
) -> None:
    fake.models_delay = 5.0
    with pytest.raises(UpstreamUnreachable, match="begin to answer") as caught:
        async with sender(transports, fake.url).opened("models"):
            pass
    assert caught.value.code == "upstream_timeout"


async def test_a_refusal_whose_text_does_not_come_is_told_by_its_status(
    fake: FakeUpstream, transports: Transports
) -> None:
    fake.play(Script([b'{"error":'], status=503, end="hang"))
    async with asyncio.timeout(2):
        error = await refused(sender(transports, fake.url))
    assert isinstance(error, UpstreamRefused)
    assert error.upstream_status == 503
    assert "no reason given" in str(error)


async def test_an_upstream_that_is_down_is_left_alone_and_tried_again(
    fake: FakeUpstream, transports: Transports
) -> None:
    asked = sender(transports, dead_url(), pause=0.1)
    for _ in range(FAILURES):
        assert (await refused(asked)).code == "upstream_connect"
    with pytest.raises(NotReady, match=r"^fake: it could not be reached"):
        async with asked.opened("models"):
            pass
    await asyncio.sleep(0.1)
    assert (await refused(asked)).code == "upstream_connect"


async def test_a_refusal_is_no_reason_to_leave_it_alone(
    fake: FakeUpstream, transports: Transports
) -> None:
    fake.play(Script([b"{}"], status=500))
    asked = sender(transports, fake.url)
    for _ in range(FAILURES + 1):
        assert (await refused(asked)).code == "upstream_refused"


class Changing(Key):
    """A key source that finds another key after it was told to forget."""

    def forget(self) -> None:
        super().forget()
        self.key = "sk-2"


async def test_a_key_that_was_changed_is_tried_at_once(
    fake: FakeUpstream, transports: Transports
) -> None:
    fake.play(Script([b"{}"], status=401), Script([b"{}"]))
    key = Changing("sk-1")
    spec = UpstreamSpec("fake", fake.url, DIALECTS["openai_chat"], patience=HASTY)
    async with Sender(spec, transports, key).opened("x", b"{}") as response:
        assert response.status_code == 200
    sent = [headers["Authorization"] for headers in fake.headers]
    assert sent == ["Bearer sk-1", "Bearer sk-2"]
    assert key.forgotten == 1


async def test_the_same_key_is_not_tried_twice(
    fake: FakeUpstream, transports: Transports
) -> None:
    fake.play(Script([b"{}"], status=401))
    assert (await refused(sender(transports, fake.url))).code == "upstream_auth"
    assert len(fake.requests) == 1
