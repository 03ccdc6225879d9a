"""What checks share: each thing is asked for once, and nothing is created."""

import asyncio
import os
import threading

import pytest

from byok.cli.checks import surroundings as module
from byok.cli.checks.results import CannotCheck
from byok.cli.checks.surroundings import NoProof, in_background
from byok.core.platform.paths import find_paths
from byok.core.routing import Service
from tests.fakes.doctors import surroundings, write_settings
from tests.fakes.rows import daemon_rows


async def test_what_several_ask_for_is_asked_for_once() -> None:
    asked = []

    async def make() -> int:
        asked.append(1)
        await asyncio.sleep(0)
        return 7

    async with surroundings() as around:
        found = await asyncio.gather(*(around.once("x", make) for _ in range(3)))
    assert (found, len(asked)) == ([7, 7, 7], 1)


async def test_one_who_gives_up_does_not_end_what_others_wait_for() -> None:
    go_on = asyncio.Event()

    async def make() -> int:
        await go_on.wait()
        return 7

    async with surroundings() as around:
        first = asyncio.ensure_future(around.once("x", make))
        second = asyncio.ensure_future(around.once("x", make))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        go_on.set()
        assert await second == 7


async def test_settings_that_cannot_be_used_leave_others_unchecked() -> None:
    write_settings("[serverr]")
    async with surroundings() as around:
        with pytest.raises(CannotCheck, match="settings cannot be used"):
            await around.settings()


async def test_no_daemon_is_found_without_creating_anything() -> None:
    async with surroundings() as around:
        assert await around.daemon() is None
        assert await around.ask_if_running(Service.DAEMON) is None
        with pytest.raises(CannotCheck, match="no daemon runs"):
            await around.ask(Service.DAEMON)
    assert not find_paths().state_dir.exists()


async def test_a_daemon_without_a_token_is_not_asked_and_none_is_created() -> None:
    async with daemon_rows() as rows, surroundings() as around:
        find_paths().owner_secret.unlink()
        with pytest.raises(CannotCheck, match="no secret"):
            await around.daemon()
    assert rows.asked == []
    assert not os.path.lexists(find_paths().owner_secret)


async def test_a_daemon_is_asked_once_for_each_thing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.1)
    answers = {"/byok/daemon": {"version": "1"}}
    async with daemon_rows(answers) as rows:
        find_paths().owner_secret.write_text("t" * 40)
        find_paths().owner_secret.chmod(0o600)
        async with surroundings() as around:
            for _ in range(2):
                assert await around.ask(Service.DAEMON) == {"version": "1"}
        rows.honest = False
        async with surroundings() as around:
            with pytest.raises(NoProof):
                await around.daemon()
            assert await around.running() is None
    assert rows.asked == [("/byok/daemon", {})]


async def test_the_result_comes_from_another_thread() -> None:
    thread = await in_background(threading.current_thread)
    assert thread is not threading.current_thread()
    assert thread.daemon  # the program need not wait for it


async def test_an_error_is_raised_where_it_is_waited_for() -> None:
    with pytest.raises(ZeroDivisionError):
        await in_background(lambda: 1 // 0)


async def test_who_stops_waiting_leaves_the_work_alone() -> None:
    go_on, ended = threading.Event(), threading.Event()

    def work() -> None:
        go_on.wait(20)
        ended.set()

    task = asyncio.ensure_future(in_background(work))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    assert await asyncio.to_thread(ended.wait, 20)
