"""The daemon, its version and its port."""

import errno
import socket
from collections.abc import Callable
from typing import Any

import pytest

from byok.doctor import daemon
from byok.doctor.daemon import (
    check_daemon,
    check_daemon_version,
    check_localhost,
    check_port,
)
from byok.doctor.results import CannotCheck, CheckState
from tests.fakes.daemon_thread import daemon_thread
from tests.fakes.doctors import surroundings, write_settings
from tests.fakes.rows import daemon_rows


async def test_a_daemon_that_runs_proves_itself_at_both_addresses() -> None:
    with daemon_thread() as running:
        async with surroundings() as around:
            found = await check_daemon(around, "")
            version = await check_daemon_version(around, "")
            port = await check_port(around, "")
    assert {r.state for r in (found, version, port)} == {CheckState.OK}
    assert f"port {running.port}" in found.found
    assert f"127.0.0.1:{running.port}" in port.found


async def test_a_daemon_that_does_not_run_is_a_warning() -> None:
    async with surroundings() as around:
        result = await check_daemon(around, "")
        with pytest.raises(CannotCheck):
            await check_daemon_version(around, "")
    assert (result.state, result.cure) == (CheckState.WARNING, "byok serve")


async def test_somebody_else_at_the_other_address_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(daemon, "_is_local", lambda family, host: True)
    async with daemon_rows():  # it listens on 127.0.0.1 alone
        from byok.daemon.token import read_token
        from byok.platform.paths import find_paths

        read_token(find_paths().token)
        async with surroundings() as around:
            result = await check_port(around, "")
    assert result.state is CheckState.FAILURE
    assert "[::1]:" in result.found
    assert "127.0.0.1" not in result.found


def failing(code: int) -> Callable[..., int]:
    def bind_error(family: socket.AddressFamily, host: str, port: int) -> int:
        return code if host == "::1" else 0

    return bind_error


@pytest.mark.parametrize(
    ("code", "state", "said"),
    [
        (0, CheckState.OK, "127.0.0.1:9123 and [::1]:9123 is free"),
        (errno.EADDRNOTAVAIL, CheckState.OK, "there is no ::1 here"),
        (errno.EADDRINUSE, CheckState.FAILURE, "[::1]:9123 is taken"),
    ],
)
async def test_the_port_must_be_free_on_both_addresses(
    monkeypatch: pytest.MonkeyPatch, code: int, state: CheckState, said: str
) -> None:
    monkeypatch.setattr(daemon, "_bind_error", failing(code))
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
