"""What is sent to the official service, and when its answer counts."""

from collections.abc import AsyncIterator, Mapping

import pytest

from byok.core.errors import (
    UpstreamGarbled,
    UpstreamRefused,
)
from byok.core.redact import Redactor
from byok.upstream.http_call import Timeouts, read_to_end
from byok.upstream.official import OfficialService
from byok.upstream.transport import Transports
from tests.fakes.asker import Key
from tests.fakes.official import JSON, TOKEN, FakeOfficial, whole
from tests.fakes.upstream import Script


@pytest.fixture
async def official() -> AsyncIterator[FakeOfficial]:
    async with FakeOfficial("/base") as service:
        yield service


class Asker:
    """Asks the service for /chat."""

    def __init__(self, official: FakeOfficial, transports: Transports) -> None:
        self.redactor = Redactor()
        self.key = Key(TOKEN)
        self.service = OfficialService(
            official.url,
            transports,
            self.key,
            self.redactor,
            timeouts=Timeouts(idle=0.3),
        )

    async def ask(
        self, headers: Mapping[str, str] = JSON, seconds: float = 5.0
    ) -> tuple[int, Mapping[str, str], bytes]:
        asked = self.service.ask("/chat", b"{}", headers, seconds)
        async with asked as answer:
            raw = await read_to_end(answer.reads, 2**20)
        return answer.status, answer.headers, raw


@pytest.fixture
async def asker(official: FakeOfficial) -> AsyncIterator[Asker]:
    transports = Transports()
    yield Asker(official, transports)
    await transports.close()


@pytest.mark.parametrize(
    "value", ["a secret 123456789 in it", "h\xe9", "a\udc80", "a\tb"]
)
async def test_official_request_leaves_out_odd_and_secret_headers(
    official: FakeOfficial, asker: Asker, value: str
) -> None:
    asker.redactor.add("123456789")
    official.expect("/chat")
    await asker.ask({**JSON, "X-Request-Id": value, "X-Mode": "sdk"})
    [headers] = official.headers
    assert "x-request-id" not in headers
    assert headers["x-mode"] == "sdk"


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 429, 500, 503])
async def test_official_refusal_is_an_error_without_its_words(
    official: FakeOfficial, asker: Asker, status: int
) -> None:
    official.expect("/chat", b"{}", whole(b'{"error": "words"}', status))
    with pytest.raises(UpstreamRefused) as caught:
        await asker.ask()
    assert caught.value.upstream_status == status
    assert "words" not in caught.value.sentence
    assert bool(caught.value.hint) is (status in (401, 402, 403))


async def test_official_web_page_is_no_answer(
    official: FakeOfficial, asker: Asker
) -> None:
    page = Script([b"<html>"], headers={"Content-Type": "text/html; charset=utf-8"})
    official.expect("/chat", b"{}", page)
    with pytest.raises(UpstreamGarbled, match="a web page"):
        await asker.ask()
