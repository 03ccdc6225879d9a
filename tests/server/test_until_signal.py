"""The end by a signal, and what a service manager is told meanwhile."""

import asyncio
import gc
import os
import signal
from collections.abc import Iterator

import pytest

from byok.core.daemon.activation import Activation, Notifier
from byok.core.platform.paths import find_paths
from byok.server.http.deadlines import Timing
from byok.server.run import Daemon, Serving
from tests.fakes.daemon import parts_of, settings_for
from tests.fakes.patience import PATIENCE
from tests.fakes.raw import connected, filled, request
from tests.fakes.service_manager import ServiceManager
from tests.fakes.upstream import FakeUpstream, Script


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.case("F39")
async def test_shutdown_by_a_signal(number: signal.Signals) -> None:
    ready = asyncio.Event()

    def on_ready(daemon: Daemon) -> None:
        assert daemon.port > 0
        assert gc.isenabled()
        ready.set()

    gc.disable()  # as main() does

    parts = parts_of(upstream="demo")
    serving = asyncio.ensure_future(Serving().run(*parts, on_ready))
    await asyncio.wait_for(ready.wait(), PATIENCE)
    os.kill(os.getpid(), number)
    await asyncio.wait_for(serving, PATIENCE)
    gc.unfreeze()


@pytest.mark.case("F39")
async def test_shutdown_at_once_by_a_second_signal(fake: FakeUpstream) -> None:
    fake.play(Script([], end="hang"))
    ready: asyncio.Future[Daemon] = asyncio.get_running_loop().create_future()
    parts = parts_of(settings_for(fake.url))
    long = Timing(grace=600)  # it would be waited for in vain
    run = Serving().run(*parts, ready.set_result, timing=long)
    serving = asyncio.ensure_future(run)
    port = (await asyncio.wait_for(ready, PATIENCE)).port
    token = find_paths().token.read_text().strip()
    async with connected(port) as connection:
        chat = request(target=b"/chat-stream", body=b'{"message":"x"}')
        await connection.send(filled(chat, port, token))
        await asyncio.wait_for(fake.reached.wait(), PATIENCE)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(serving, PATIENCE)
    gc.unfreeze()


@pytest.fixture
def service_manager() -> Iterator[ServiceManager]:
    with ServiceManager() as manager:
        yield manager


async def test_service_manager_is_told_of_start_reload_and_end(
    service_manager: ServiceManager,
) -> None:
    ready: asyncio.Future[Daemon] = asyncio.get_running_loop().create_future()
    activation = Activation(notifier=Notifier(service_manager.address))
    run = Serving(activation).run(*parts_of(upstream="demo"), ready.set_result)
    serving = asyncio.ensure_future(run)
    daemon = await asyncio.wait_for(ready, PATIENCE)
    os.kill(os.getpid(), signal.SIGHUP)
    told = [await service_manager.next() for _ in range(3)]
    os.kill(os.getpid(), signal.SIGTERM)
    told.append(await service_manager.next())
    await asyncio.wait_for(serving, PATIENCE)
    gc.unfreeze()
    assert told[0] == ["READY=1", f"STATUS=listening on {daemon.url}"]
    assert [lines[0] for lines in told[1:]] == ["RELOADING=1", "READY=1", "STOPPING=1"]
