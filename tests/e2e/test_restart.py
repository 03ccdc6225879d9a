"""A restart loses no answer, refuses no connection, and fails without harm."""

import asyncio
import json
import os
import signal
import socket
import sys
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.fakes.patience import PATIENCE, START, until
from tests.fakes.ports import free_port
from tests.fakes.program import Program, configure, run_byok, serving
from tests.fakes.raw import RawAnswer, connected, request
from tests.fakes.second_user import besieging
from tests.fakes.upstream import DONE, FakeUpstream, Script, delta

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="it replaces the process there"),
]
WORDS = [f"word{number} " for number in range(40)]
CHAT = request(target=b"/chat-stream", body=b'{"message": "Count."}')


def answer_until(go_on: asyncio.Event) -> Script:
    """Script an answer whose second half waits for an event."""
    words = [delta(content=word) for word in WORDS]
    half = len(words) // 2
    return Script([*words[:half], go_on, *words[half:], delta(finish="stop"), DONE])


def record(home: Path) -> dict[str, Any]:
    """Return what the daemon has recorded; the instance "" while none has."""
    try:
        found: dict[str, Any] = json.loads((home / "state/daemon.json").read_bytes())
    except FileNotFoundError:  # one process has ended, the other has not begun
        return {"instance": ""}
    return found


async def byok(home: Path, *words: str) -> tuple[int, str]:
    """Run a command; return its exit code and all that it wrote."""
    env = {"BYOK_HOME": str(home)}
    done = await asyncio.to_thread(run_byok, *words, env=env)
    return done.returncode, done.stdout + done.stderr


async def stream(program: Program) -> RawAnswer:
    async with connected(program.port) as connection:
        await connection.send(program.filled(CHAT))
        return await connection.answer(PATIENCE)


def check_whole(answer: RawAnswer) -> None:
    lines = [json.loads(line) for line in answer.body.splitlines()]
    assert "".join(line["text"] for line in lines) == "".join(WORDS)
    assert lines[-1]["stop_reason"] == 1
    assert "error" not in lines[-1]


async def knock(program: Program, until: asyncio.Event) -> int:
    """Connect again and again; return how often. A refused connection raises."""
    count = 0
    while not until.is_set():
        health = request(
            method=b"GET", target=b"/health", token=b"", kind=b"", body=b""
        )
        answer = await program.ask(health, PATIENCE)
        assert answer.status == 200
        count += 1
        await asyncio.sleep(0.02)
    return count


@pytest.mark.case("F70", "B162")
async def test_a_restart_loses_no_answer_and_refuses_no_connection(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    home = tmp_path / "home"
    configure(home, fake.url, "[caps]\nrequests_per_day = 100\n")
    go_on = asyncio.Event()
    fake.play(answer_until(go_on))
    async with serving(home) as program:
        before, over = record(home), asyncio.Event()
        knocking = asyncio.ensure_future(knock(program, over))
        answers = [asyncio.ensure_future(stream(program)) for _ in range(20)]
        await until(lambda: fake.open == 20)
        with besieging(program.port) as siege:  # a second user wants the port
            code, told = await byok(home, "restart")
        assert code == 0, told
        assert siege.tries > 100
        assert siege.taken == 0
        after = record(home)
        assert after["instance"] != before["instance"]
        assert after["port"] == before["port"] == program.port
        go_on.set()
        later = await stream(program)
        for answer in [*await asyncio.gather(*answers), later]:
            check_whole(answer)
        over.set()
        assert await knocking > 10
        assert program.process.returncode is None  # whoever started byok sees it run

        async def are_counted() -> bool:
            [cap] = (await program.post("/byok/daemon")).json["features"]["caps"]
            return bool(cap["used"] == 21)

        # Those that ended in the former process count, too, once it has ended.
        await until(are_counted)
        assert (await byok(home, "restart"))[0] == 0  # of one that was restarted
        await program.check_well()
        assert (await byok(home, "stop"))[0] == 0
        assert await asyncio.wait_for(program.process.wait(), PATIENCE) == 0
    program.check_log()


@pytest.mark.case("F71")
async def test_answers_that_a_signal_cuts_during_a_restart_say_so(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    home = tmp_path / "home"
    configure(home, fake.url)
    fake.play(Script([delta(content="One")], end="hang"))
    async with serving(home) as program:
        cut = asyncio.ensure_future(stream(program))
        await asyncio.wait_for(fake.reached.wait(), PATIENCE)
        assert (await byok(home, "restart"))[0] == 0
        program.process.send_signal(signal.SIGTERM)
        last = json.loads((await cut).body.splitlines()[-1])
        assert (last["stop_reason"], last["error"]["code"]) == (0, "shutting_down")
        assert await asyncio.wait_for(program.process.wait(), PATIENCE) == 0
        with socket.socket() as free:  # nobody is left there
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind(("127.0.0.1", program.port))


async def has_child(program: Program) -> bool:
    command = ("ps", "-A", "-o", "ppid=")
    pipe = asyncio.subprocess.PIPE
    listing = await asyncio.create_subprocess_exec(*command, stdout=pipe)
    return str(program.process.pid).encode() in (await listing.communicate())[0].split()


@pytest.mark.case("F71")
async def test_a_stop_ends_byok_although_a_restart_has_begun(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    """Whoever asked for the restart has left; its successor would go on alone."""
    home = tmp_path / "home"
    configure(home, fake.url)
    async with serving(home) as program:
        body = json.dumps({"instance": record(home)["instance"], "again": True})
        restart = request(target=b"/byok/stop", body=body.encode())
        async with connected(program.port) as leaving:
            await leaving.send(program.filled(restart))
            await until(partial(has_child, program))
        program.process.send_signal(signal.SIGTERM)
        # Only the end of all processes that have it ends the output.
        assert (await program.ended())[0] == 0
    program.check_log()


@pytest.mark.case("F72")
async def test_a_restart_that_fails_changes_nothing(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    home, go_on = tmp_path / "home", asyncio.Event()
    fake.play(answer_until(go_on))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        home.mkdir(mode=0o700)
        configure(home, fake.url)
        (home / "config.toml").chmod(0o600)
        command = [sys.executable, "-m", "byok", "serve"]
        own = free_port()
        settings = (home / "config.toml").read_text()
        (home / "config.toml").write_text(f"{settings}[server]\nport = {own}\n")
        process = await asyncio.create_subprocess_exec(
            *command,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, "BYOK_HOME": str(home)},
        )
        try:
            assert process.stdout is not None
            assert await asyncio.wait_for(process.stdout.readline(), START)
            program = Program(process, home, own, b"")
            before = record(home)
            answer = asyncio.ensure_future(stream(program))
            await asyncio.wait_for(fake.reached.wait(), PATIENCE)
            (home / "config.toml").write_text(f"{settings}[server]\nport = {port}\n")
            code, told = await byok(home, "restart")
            assert (code, "goes on" in told) == (69, True)
            go_on.set()
            check_whole(await answer)
            assert record(home) == before
            await program.ask(CHAT, PATIENCE)
        finally:
            process.terminate()
            await process.communicate()


@pytest.mark.case("F73")
async def test_settings_that_need_a_restart_get_one_that_nobody_notices(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    home = tmp_path / "home"
    configure(home, fake.url)
    go_on = asyncio.Event()
    fake.play(answer_until(go_on))
    async with serving(home) as program:
        before = record(home)

        async def ask_page(name: str, token: str, **body: object) -> tuple[int, Any]:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            url = f"http://127.0.0.1:{program.port}/ui/api/{name}"
            # On a connection of its own: the former process closes those it had.
            asking = aiohttp.request("POST", url, json=body, headers=headers)
            async with asking as told:
                return told.status, await told.json()

        made = await program.post("/byok/dashboard-code")
        _, opened = await ask_page("sign-in", "", code=made.json["code"])
        answer = asyncio.ensure_future(stream(program))
        await asyncio.wait_for(fake.reached.wait(), PATIENCE)
        configure(home, fake.url, "[limits]\nstreams = 7\n")
        old = ("", before["instance"])
        await until(lambda: record(home)["instance"] not in old)
        go_on.set()
        check_whole(await answer)
        status, settings = await ask_page("settings", opened["token"])
        assert (status, settings["restart"]) == (200, [])
        shown = await program.post("/byok/settings")
        assert shown.json["limits"]["streams"] == 7
