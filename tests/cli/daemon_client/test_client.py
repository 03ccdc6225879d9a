"""Asking the daemon, or this process: whichever there is at the moment."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from byok.cli.daemon_client import Ask, LocalClient, find_daemon, talking
from byok.core.chat import Json
from byok.core.daemon.challenge import derive_owner_token
from byok.core.daemon.instance import Instance, only_instance
from byok.core.daemon.token import read_token
from byok.core.errors import ByokError, DaemonGone, IndexInUse
from byok.core.platform.paths import find_paths
from byok.core.routing import Service
from tests.fakes.patience import PATIENCE
from tests.fakes.rows import daemon_rows

STATUS = "/byok/index/status"
ADD = "/byok/index/add"


class Own:
    """Stands for the context of this process."""

    def __init__(self, failures: int = 0) -> None:
        self.opened: list[list[Path]] = []
        self.closed = 0
        self.failures = failures
        self.busy, self.free = asyncio.Event(), asyncio.Event()
        self.free.set()

    @asynccontextmanager
    async def open(self, roots: Iterable[Path]) -> AsyncIterator[Ask]:
        self.opened.append(list(roots))
        if self.failures:
            self.failures -= 1
            raise IndexInUse("Another process has it.")
        yield self.answer
        self.closed += 1

    async def answer(self, service: str, body: Json) -> Json:
        self.busy.set()
        await self.free.wait()
        return {"own": service, **body}


async def state(client: LocalClient) -> str:
    told = await client.ask(Service.INDEX_STATUS, {})
    return "own" if "own" in told else str(told["state"])


async def test_client_without_a_daemon_answers_in_this_process_and_closes(
    tmp_path: Path,
) -> None:
    own = Own()
    async with LocalClient(find_paths(), own.open, [tmp_path]) as client:
        assert await client.ask(Service.SEARCH, {"query": "x"}) == {
            "own": Service.SEARCH,
            "query": "x",
        }
        assert await client.daemon() is None
        assert (own.opened, own.closed) == ([[tmp_path]], 0)
    assert own.closed == 1


async def test_client_with_a_daemon_sends_the_question_and_the_folders(
    tmp_path: Path,
) -> None:
    own = Own()
    answers = {STATUS: {"state": "indexed"}, ADD: {"workspace": {}}}
    async with (
        daemon_rows(answers) as rows,
        LocalClient(find_paths(), own.open, [tmp_path]) as client,
    ):
        assert await state(client) == "indexed"
        assert await state(client) == "indexed"
        found = await client.daemon()
    assert found is not None
    assert found.port == rows.port
    assert [path for path, _ in rows.asked] == [ADD, STATUS, STATUS]
    assert rows.asked[0][1] == {"root": str(tmp_path), "permanent": False}
    assert own.opened == []


async def test_client_sends_the_token_only_after_the_proof() -> None:
    own = Own()
    async with daemon_rows({STATUS: {"state": "indexed"}}) as rows:
        rows.honest = False
        async with LocalClient(find_paths(), own.open, start_seconds=0) as client:
            assert await state(client) == "own"
        assert (rows.tokens, rows.asked) == ([], [])


async def test_client_hands_over_to_a_daemon_that_starts_and_frees_the_files() -> None:
    own = Own()
    async with LocalClient(find_paths(), own.open) as client:
        assert await state(client) == "own"
        async with daemon_rows({STATUS: {"state": "indexed"}}):
            assert await state(client) == "indexed"
            assert own.closed == 1
        assert await state(client) == "own"
    assert own.closed == 2


async def test_client_answer_is_not_interrupted_by_a_new_daemon() -> None:
    own = Own()
    own.free.clear()
    async with (
        LocalClient(find_paths(), own.open) as client,
        asyncio.TaskGroup() as group,
    ):
        slow = group.create_task(state(client))
        await own.busy.wait()
        async with daemon_rows({STATUS: {"state": "indexed"}}):
            meanwhile = group.create_task(state(client))
            await asyncio.sleep(0)
            own.free.set()
            assert (await slow, await meanwhile) == ("own", "own")
            assert await state(client) == "indexed"


async def test_client_waits_for_an_index_in_use() -> None:
    own = Own(failures=2)
    async with LocalClient(find_paths(), own.open) as client:
        assert await state(client) == "own"
    assert len(own.opened) == 3


async def test_client_sends_more_folders_to_the_daemon(tmp_path: Path) -> None:
    answers = {STATUS: {"state": "indexed"}, ADD: {"workspace": {}}}
    async with (
        daemon_rows(answers) as rows,
        LocalClient(find_paths(), Own().open) as client,
    ):
        await client.follow([tmp_path])
    assert rows.asked == [(ADD, {"root": str(tmp_path), "permanent": False})]


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
