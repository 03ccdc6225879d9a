"""What is sent to the official service, and when its answer counts."""

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest

from byok import __version__
from byok.core.errors import (
    ByokError,
    KeyMissing,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamUnreachable,
)
from byok.core.redact import Redactor
from byok.upstream.http_call import Timeouts, read_to_end
from byok.upstream.official import OfficialService, too_late
from byok.upstream.transport import Transports
from tests.fakes.asker import Key
from tests.fakes.official import JSON, NDJSON, TOKEN, FakeOfficial, whole
from tests.fakes.patience import PATIENCE
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


async def test_official_answer_passes_unchanged(
    official: FakeOfficial, asker: Asker
) -> None:
    packed = {"Content-Encoding": "gzip", "X-Other": "1", **JSON}
    official.expect("/chat", b"{}", Script([b"\x1f", b"\x8b"], 203, packed))
    status, headers, raw = await asker.ask()
    assert (status, raw) == (203, b"\x1f\x8b")
    assert headers == {"content-type": JSON["Content-Type"], "content-encoding": "gzip"}


async def test_official_request_without_a_client_names_byok(
    official: FakeOfficial, asker: Asker
) -> None:
    official.expect("/chat")
    await asker.ask()
    [headers] = official.headers
    assert headers["user-agent"] == f"byok/{__version__}"
    assert headers["authorization"] == f"Bearer {TOKEN}"
    assert headers["accept-encoding"] == "identity"


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


async def test_official_empty_answer_is_an_answer(
    official: FakeOfficial, asker: Asker
) -> None:
    official.expect("/chat", b"{}", Script([], headers=NDJSON))
    assert (await asker.ask())[2] == b""


async def test_official_request_without_a_token_is_not_sent(
    official: FakeOfficial, asker: Asker
) -> None:
    asker.key.key = ""
    with pytest.raises(KeyMissing) as caught:
        await asker.ask()
    assert caught.value.hint == "Run: byok keys set official"
    assert official.raw == []


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


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_official_redirect_is_an_error(
    official: FakeOfficial, asker: Asker, status: int
) -> None:
    elsewhere = whole(b"", status, Location="/base/other")
    official.expect("/chat", b"{}", elsewhere)
    with pytest.raises(UpstreamRefused) as caught:
        await asker.ask()
    assert caught.value.code == "upstream_redirect"
    assert official.paths == ["/chat"]


async def test_official_web_page_is_no_answer(
    official: FakeOfficial, asker: Asker
) -> None:
    page = Script([b"<html>"], headers={"Content-Type": "text/html; charset=utf-8"})
    official.expect("/chat", b"{}", page)
    with pytest.raises(UpstreamGarbled, match="a web page"):
        await asker.ask()


async def failure(asker: Asker, seconds: float = 5.0) -> ByokError:
    with pytest.raises(ByokError) as caught:
        await asker.ask(seconds=seconds)
    return caught.value


async def test_official_first_byte_timeout(
    official: FakeOfficial, asker: Asker
) -> None:
    official.expect("/chat", silent=True)
    assert (await failure(asker, 0.1)).code == "upstream_timeout"
    official.expect("/chat", b"{}", Script([], headers=NDJSON, end="hang"))
    error = await failure(asker, 0.1)
    assert (error.code, str(error)) == ("upstream_timeout", str(too_late()))
    await asyncio.wait_for(official.hung_up.wait(), PATIENCE)


async def test_official_idle_timeout(official: FakeOfficial, asker: Asker) -> None:
    official.expect("/chat", b"{}", Script([b"x"], headers=NDJSON, end="hang"))
    error = await failure(asker, 0.2)
    assert isinstance(error, UpstreamUnreachable)
    assert "fell silent in the middle" in str(error)


async def test_official_answer_that_breaks_is_an_error(
    official: FakeOfficial, asker: Asker
) -> None:
    for pieces in ([], [b"x"]):
        official.expect("/chat", b"{}", Script(pieces, headers=NDJSON, end="reset"))
        assert (await failure(asker)).code == "upstream_cut"


async def test_official_service_that_is_down_is_an_error(
    official: FakeOfficial, asker: Asker
) -> None:
    await official.down()
    assert (await failure(asker)).code == "upstream_connect"
