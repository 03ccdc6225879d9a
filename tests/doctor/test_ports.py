"""The port, on both loopback addresses."""

import errno
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

import pytest

from byok.daemon.token import read_token
from byok.doctor import ports
from byok.doctor.port_owner import PortOwner
from byok.doctor.ports import check_localhost, check_port
from byok.doctor.results import CheckState
from byok.platform.paths import find_paths
from tests.fakes.doctors import surroundings, write_settings
from tests.fakes.rows import daemon_rows


async def test_somebody_else_at_the_other_address_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ports, "_bind_error", lambda host, port: 0)
    async with daemon_rows():  # it listens on 127.0.0.1 alone
        read_token(find_paths().owner_secret)
        async with surroundings() as around:
            result = await check_port(around, "")
    assert result.state is CheckState.FAILURE
    assert "[::1]:" in result.found
    assert "127.0.0.1" not in result.found


def failing(code: int) -> Callable[[str, int], int]:
    def bind_error(host: str, port: int) -> int:
        return code if host == "::1" else 0

    return bind_error


@pytest.mark.parametrize(
    ("code", "state", "said"),
    [
        (0, CheckState.OK, "127.0.0.1:9123 and [::1]:9123 free"),
        (errno.EADDRNOTAVAIL, CheckState.OK, "there is no ::1 here"),
        (errno.EADDRINUSE, CheckState.FAILURE, "[::1]:9123 is taken"),
        (errno.EACCES, CheckState.FAILURE, "[::1]:9123 is reserved by the system"),
    ],
)
async def test_the_port_must_be_free_on_both_addresses(
    monkeypatch: pytest.MonkeyPatch, code: int, state: CheckState, said: str
) -> None:
    monkeypatch.setattr(ports, "_bind_error", failing(code))
    write_settings("[server]", "port = 9123")
    async with surroundings() as around:
        result = await check_port(around, "")
    assert result.state is state
    assert said in result.found


async def test_any_port_cannot_be_checked() -> None:
    write_settings("[server]", "port = 0")
    async with surroundings() as around:
        assert (await check_port(around, "")).state is CheckState.NOT_CHECKED


@pytest.mark.parametrize(
    ("addresses", "state"),
    [
        (["127.0.0.1", "::1"], CheckState.OK),
        (["192.0.2.1"], CheckState.FAILURE),
        ([], CheckState.WARNING),
    ],
    ids=str,
)
async def test_localhost_must_be_this_machine(
    monkeypatch: pytest.MonkeyPatch, addresses: list[str], state: CheckState
) -> None:
    def resolve(host: str, *rest: Any) -> list[Any]:
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(0, 0, 0, "", (address, 0)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    async with surroundings() as around:
        result = await check_localhost(around, "")
    assert result.state is state
    assert bool(result.cure) is (state is not CheckState.OK)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
async def test_who_has_the_port_is_named() -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        write_settings("[server]", f"port = {stranger.getsockname()[1]}")
        async with surroundings() as around:
            result = await check_port(around, "")
    assert f"pid {os.getpid()})" in result.found
    assert "ss -ltnp" in result.cure


async def test_systemd_may_listen_for_byok(monkeypatch: pytest.MonkeyPatch) -> None:
    def systemd(*place: Any) -> PortOwner:
        return PortOwner(1, "systemd")

    monkeypatch.setattr(ports, "_bind_error", failing(errno.EADDRINUSE))
    monkeypatch.setattr(ports, "find_owner", systemd)
    async with surroundings() as around:
        result = await check_port(around, "")
    assert result.state is CheckState.OK
    assert "the first request starts byok" in result.found
