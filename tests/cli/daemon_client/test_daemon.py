"""The daemon of this user: found, verified and asked."""

import asyncio
import threading
import time
from typing import Any

import pytest

from byok.cli.daemon_client import find_daemon, talking
from byok.core.chat import Json
from byok.core.daemon.challenge import derive_owner_token
from byok.core.daemon.instance import Instance, only_instance
from byok.core.daemon.token import read_token
from byok.core.errors import ByokError, DaemonGone
from byok.core.platform.paths import find_paths
from byok.core.routing import Service
from tests.fakes.patience import PATIENCE
from tests.fakes.rows import daemon_rows

PATH = "/byok/index/status"


async def ask(port: int) -> Json:
    async with talking(Instance(1, port, "one", 0.0), find_paths()) as ask_it:
        return await ask_it(Service.INDEX_STATUS, {"a": 1})


async def test_daemon_client_returns_the_answer_and_sends_the_token() -> None:
    async with daemon_rows({PATH: {"state": "indexed"}}) as rows:
        assert await ask(rows.port) == {"state": "indexed"}
        assert rows.asked == [(PATH, {"a": 1})]
        secret = read_token(find_paths().owner_secret)
        assert rows.tokens == [f"Bearer {derive_owner_token(secret, rows.port, 'one')}"]
        assert secret not in rows.tokens[0]


async def test_an_error_of_the_daemon_is_the_same_error_here() -> None:
    told = {"code": "no_workspace", "message": "No.", "hint": "Do.", "retryable": True}
    async with daemon_rows({PATH: (422, {"error": told})}) as rows:
        with pytest.raises(ByokError) as caught:
            await ask(rows.port)
    error = caught.value
    assert (str(error), error.hint, error.code) == ("No.", "Do.", "no_workspace")
    assert (error.status, error.retryable) == (422, True)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({}, "other_version"),
        ((200, b"<html>"), "not_ready"),
        ((401, {"error": {"code": "bad_token", "message": "No."}}), DaemonGone.code),
    ],
    ids=str,
)
async def test_daemon_client_reports_an_odd_answer(answer: Any, code: str) -> None:
    async with daemon_rows({PATH: answer}) as rows:
        with pytest.raises(ByokError) as caught:
            await ask(rows.port)
    assert caught.value.code == code


async def test_daemon_client_ignores_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with daemon_rows({PATH: {"state": "indexed"}}) as rows:
        assert await ask(rows.port) == {"state": "indexed"}


async def find(seconds: float = 0) -> int:
    """Return the port of the daemon, 0 without one."""
    found = await asyncio.to_thread(find_daemon, find_paths(), seconds)
    return found.port if found else 0


async def test_find_daemon_gives_nothing_at_once_without_one() -> None:
    async with asyncio.timeout(PATIENCE):
        assert await find(600) == 0


async def test_find_daemon_waits_for_one_that_is_starting() -> None:
    ready, found = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def start() -> None:
        with only_instance(find_paths()):
            ready.set()
            time.sleep(0.1)
        asyncio.run_coroutine_threadsafe(serve(), loop)

    async def serve() -> None:
        async with daemon_rows():
            await found.wait()

    thread = threading.Thread(target=start)
    thread.start()
    await asyncio.to_thread(ready.wait)
    deadline = time.monotonic() + PATIENCE
    while not (port := await find(5)) and time.monotonic() < deadline:
        pass  # the lock changed hands between two looks
    found.set()
    thread.join()
    assert port
