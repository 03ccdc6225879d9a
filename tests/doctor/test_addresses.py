"""Addresses of upstreams: names, connections, proxies."""

import socket

import pytest

from byok.doctor.addresses import check_address, expect_address, spec_of
from byok.doctor.results import CannotCheck, CheckState
from tests.fakes.certificates import resolve_here
from tests.fakes.doctors import surroundings, upstream_box, write_settings
from tests.fakes.upstream import FakeUpstream, dead_url


async def test_an_address_that_takes_connections_is_good(fake: FakeUpstream) -> None:
    write_settings(*upstream_box(fake.url))
    async with surroundings() as around:
        result = await check_address(around, "box")
    assert result.state is CheckState.OK
    assert "127.0.0.1" in result.found


@pytest.mark.parametrize(
    ("url", "found", "cure"),
    [
        ("https://a.test:{port}/v1", "nothing answers at a.test", "online"),
        ("https://a.invalid/v1", "the name a.invalid has no address", "base_url"),
        ("https://meta.link/v1", "link-local", "own address"),
    ],
)
async def test_an_address_that_cannot_be_used_is_named(
    url: str, found: str, cure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_here(monkeypatch)
    here = socket.getaddrinfo

    def resolve(host: str, *rest: object, **named: object) -> object:
        if host == "meta.link":
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.1.1", 80))]
        return here(host, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    port = dead_url().split(":")[2].split("/")[0]
    write_settings(*upstream_box(url.format(port=port)))
    async with surroundings() as around:
        result = await check_address(around, "box")
    assert result.state is CheckState.FAILURE
    assert found in result.found
    assert cure in result.cure


async def test_behind_a_proxy_that_is_connected_to() -> None:
    proxy = dead_url().removesuffix("/v1")
    url = "https://models.example/v1"
    write_settings(*upstream_box(url, f'proxy = "{proxy}"'))
    async with surroundings() as around:
        result = await check_address(around, "box")
    assert result.found.startswith("the proxy 127.0.0.1:")
    assert "proxy" in result.cure


async def test_what_else_is_asked_waits_for_the_address(fake: FakeUpstream) -> None:
    down = ["[upstreams.down]", f'base_url = "{dead_url()}"']
    write_settings(*upstream_box(fake.url), *down)
    async with surroundings() as around:
        await expect_address(around, "box")
        with pytest.raises(CannotCheck, match="no connection"):
            await expect_address(around, "down")
        assert (await spec_of(around, "box")).api.base_url == fake.url
    assert fake.list_headers == []
