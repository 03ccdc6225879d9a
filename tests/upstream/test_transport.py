"""The ways to the network: one client each, no proxy or cookie but by order."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from byok.errors import ConfigError
from byok.upstream.transport import Route, Transports
from tests.fakes.upstream import FakeUpstream, Script
from tests.upstream.test_discover import dead_url


@pytest.fixture
async def transports() -> AsyncIterator[Transports]:
    made = Transports()
    yield made
    await made.close()


async def test_a_route_keeps_its_client(transports: Transports) -> None:
    plain = transports.client(Route())
    assert transports.client(Route()) is plain
    assert transports.client(Route(proxy="http://127.0.0.1:1")) is not plain


async def test_closing_closes_every_client() -> None:
    transports = Transports()
    clients = [transports.client(Route()), transports.client(Route("http://[::1]:1"))]
    await transports.close()
    assert all(client.is_closed for client in clients)
    await transports.close()


@pytest.mark.parametrize(
    "proxy", ["not a proxy", "ftp://127.0.0.1:1", "127.0.0.1:8080", "http://"]
)
async def test_a_proxy_that_is_none_is_refused(
    transports: Transports, proxy: str
) -> None:
    with pytest.raises(ConfigError, match="proxy"):
        transports.client(Route(proxy=proxy))


async def test_a_file_of_authorities_that_is_none_is_refused(
    transports: Transports, tmp_path: Path
) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n")
    for path in (junk, tmp_path, tmp_path / "missing.pem"):
        with pytest.raises(ConfigError, match="ca_file"):
            transports.client(Route(ca_file=str(path)))


async def test_the_proxies_of_the_environment_are_ignored(
    fake: FakeUpstream, transports: Transports, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, dead_url())
    response = await transports.client(Route()).get(f"{fake.url}/models")
    assert response.status_code == 200


async def test_an_explicit_proxy_is_used(
    fake: FakeUpstream, transports: Transports
) -> None:
    client = transports.client(Route(proxy=dead_url().removesuffix("/v1")))
    with pytest.raises(httpx.HTTPError):
        await client.get(f"{fake.url}/models")


async def test_a_redirect_is_not_followed_and_a_cookie_not_kept(
    fake: FakeUpstream, transports: Transports
) -> None:
    headers = {"Location": f"{fake.url}/models", "Set-Cookie": "a=b; Path=/"}
    fake.play(Script([b"x"], status=302, headers=headers))
    client = transports.client(Route())
    for _ in range(2):
        response = await client.post(f"{fake.url}/chat/completions", json={})
        assert response.status_code == 302
    assert "Cookie" not in fake.headers[1]
    assert fake.list_headers == []
