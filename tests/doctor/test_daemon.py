"""The daemon and its version."""

import pytest

from byok.doctor.daemon import check_daemon, check_daemon_version
from byok.doctor.ports import check_port
from byok.doctor.results import CannotCheck, CheckState
from tests.fakes.daemon_thread import daemon_thread
from tests.fakes.doctors import surroundings


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
