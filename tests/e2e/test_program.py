"""The daemon as a process in an odd world: signals, logs, folders, variables."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.fakes.commands import Cli
from tests.fakes.patience import PATIENCE, START, until
from tests.fakes.program import (
    HELD,
    KEY,
    ROOT,
    Program,
    configure,
    serving,
    starting,
    streams,
)
from tests.fakes.raw import RawAnswer, ask, filled, request
from tests.fakes.upstream import FakeUpstream, Script, answer, delta

posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


async def written(program: Program, words: bytes) -> None:
    """Wait until the daemon has written something to stderr."""
    await until(lambda: words in program.err)


def last(reply: RawAnswer) -> dict[str, object]:
    """Return the last line of a stream, all of whose lines are whole."""
    assert reply.body.endswith(b"\n")
    lines: list[dict[str, object]] = [json.loads(x) for x in reply.body.splitlines()]
    return lines[-1]


# Signals.


@posix
@pytest.mark.case("F39")
async def test_sigterm_lets_streams_end(tmp_path: Path, fake: FakeUpstream) -> None:
    configure(tmp_path / "home", fake.url)
    go_on = asyncio.Event()
    fake.play(Script([delta(content="One"), go_on, delta("stop", content=" two.")]))
    async with serving(tmp_path / "home") as program:
        tasks = await streams(program, fake)
        program.process.send_signal(signal.SIGTERM)
        await written(program, b"stopping")
        go_on.set()
        code, _, _ = await program.ended()
        replies = await asyncio.gather(*tasks)
        program.check_log()
    assert code == 0
    assert [("error" in last(r), last(r)["stop_reason"]) for r in replies] == [
        (False, 1)
    ] * 8


@posix
@pytest.mark.case("F39")
async def test_sigterm_twice_ends_streams_at_once_with_a_last_line(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    configure(tmp_path / "home", fake.url)
    fake.play(HELD)
    async with serving(tmp_path / "home") as program:
        tasks = await streams(program, fake)
        program.process.send_signal(signal.SIGTERM)
        await written(program, b"stopping")
        program.process.send_signal(signal.SIGTERM)
        # Less than the time that one signal would leave them.
        replies = await asyncio.wait_for(asyncio.gather(*tasks), 8)
        code, _, _ = await program.ended()
        program.check_log()
    assert code == 0
    errors = [last(reply)["error"] for reply in replies]
    assert [e["code"] for e in errors if isinstance(e, dict)] == ["shutting_down"] * 8


@posix
@pytest.mark.case("F39")
async def test_sighup_reloads_keys_and_disturbs_no_stream(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    home, key = tmp_path / "home", tmp_path / "key"
    key.write_text("first-key")
    configure(home, fake.url)
    with (home / "config.toml").open("a") as config:
        config.write(f"[upstreams.other]\nbase_url = '{fake.url}'\nmodel = 'm'\n")
        config.write(f"api_key_cmd = ['cat', '{key}']\n")
    chat = request(body=b'{"message": "x", "model": "byok:other:m"}')
    fake.play(answer("Hi."), HELD, answer("Hi."))
    async with serving(home) as program:
        assert (await program.ask(chat)).status == 200
        [held] = await streams(program, fake, 1)
        key.write_text("second-key")
        program.process.send_signal(signal.SIGHUP)
        await written(program, b"the settings were read")
        assert (await program.ask(chat)).status == 200
        assert not held.done()
        keys = [h["Authorization"] for h in fake.headers]
        assert keys[0::2] == ["Bearer first-key", "Bearer second-key"]
        held.cancel()
        program.check_log()


@posix
@pytest.mark.case("F39")
async def test_sigint_while_starting_ends_it_and_frees_the_lock(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with starting(home, "--upstream", "demo") as program:
        await until((home / "state" / "daemon.lock").exists)
        code, _, _ = await program.ended(signal.SIGINT)
        program.check_log()
    assert code in (0, 130, -signal.SIGINT)
    async with serving(home, "--upstream", "demo") as program:
        await program.check_well()


@posix
@pytest.mark.case("F41")
async def test_sigstop_and_sigcont_keep_the_streams(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    configure(tmp_path / "home", fake.url)
    texts = [f"{n} " for n in range(20)]
    go_on = asyncio.Event()
    first, *rest = [delta(content=text) for text in texts]
    fake.play(Script([first, go_on, *rest, delta("stop")]))
    async with serving(tmp_path / "home") as program:
        tasks = await streams(program, fake, 8)
        program.process.send_signal(signal.SIGSTOP)
        go_on.set()
        await until(lambda: not fake.open)  # it has said everything
        program.process.send_signal(signal.SIGCONT)
        for reply in await asyncio.gather(*tasks):
            assert "error" not in last(reply)
            words = (json.loads(line)["text"] for line in reply.body.splitlines())
            assert "".join(words) == "".join(texts)
        fake.play(answer("Hi."))
        await program.check_well()


# Killed.


def files(home: Path) -> set[str]:
    """All files but the logs."""
    return {
        str(path.relative_to(home))
        for path in home.rglob("*")
        if path.is_file() and path.suffix != ".log"
    }


@posix
async def test_crash_with_open_streams_leaves_a_clean_next_start(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    home = tmp_path / "home"
    configure(home, fake.url, "[journal]\nkeep_days = 0\n")  # written a moment later
    fake.play(HELD)
    async with serving(home) as program:
        tasks = await streams(program, fake)
        before = {name for name in files(home) if "/." not in name}
        before.add("state/models.json")  # which either daemon may be the one to finish
        code, _, _ = await program.ended(signal.SIGKILL)
        await asyncio.gather(*tasks, return_exceptions=True)
    assert code == -signal.SIGKILL
    await until(lambda: not fake.open)  # it notices that nobody listens any more
    fake.play(answer("Hi."))
    async with serving(home) as program:
        await program.check_well()
        await until(lambda: files(home) == before)


# Logs.


@posix
@pytest.mark.case("F43")
async def test_log_on_a_full_disk_stops_and_the_daemon_does_not(tmp_path: Path) -> None:
    odd = request(target=b"/odd/%b" % KEY.encode().replace(b"/", b"_"))
    limit = "RLIMIT_FSIZE=12000"  # no file may grow beyond this
    async with serving(tmp_path / "home", "--upstream", "demo", limits=limit) as p:
        for n in range(150):
            assert (await p.ask(odd.replace(b"/odd", b"/odd%d" % n))).status == 200
        assert p.log_file.stat().st_size <= 12_000
        assert len(p.err) <= 12_000
        await p.check_well()
        code, _, _ = await p.ended(signal.SIGTERM)
    assert code == 0


@posix
@pytest.mark.case("F43")
async def test_log_that_cannot_be_written_says_nothing_in_clear(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    (home / "state" / "log").mkdir(parents=True)
    log = home / "state" / "log" / "byok.log"
    log.write_bytes(b"\n" * 12_000)
    limit = "RLIMIT_FSIZE=12000"
    reader, writer = os.pipe()
    async with serving(
        home, "--upstream", "demo", limits=limit, stderr=writer
    ) as program:
        os.close(writer)
        secret = request(target=b"/odd/TOKEN")
        assert (await program.ask(secret)).status == 200
        token = program.token.encode()
        await program.ended(signal.SIGTERM)
    with os.fdopen(reader, "rb") as pipe:
        written = pipe.read()
    assert b"unknown path" in written
    assert token not in written
    assert b"Traceback" not in written


def has_logged(program: Program) -> bool:
    """Tell whether the log has the line of a chat, which comes a moment later."""
    file = program.log_file
    return file.is_file() and b"POST /chat 200" in file.read_bytes()


@posix
@pytest.mark.case("F43")
async def test_log_that_was_deleted_is_recreated(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", "--upstream", "demo") as program:
        program.log_file.unlink()
        await program.check_well()
        await until(partial(has_logged, program))
        assert program.log_file.stat().st_mode & 0o077 == 0
        shutil.rmtree(program.log_file.parent)
        await program.check_well()
        await until(lambda: program.err.count(b"POST /chat 200") == 2)


@posix
@pytest.mark.case("F43")
async def test_closed_stdout_and_stderr_change_nothing(
    tmp_path: Path,
) -> None:
    reader, writer = os.pipe()
    home = tmp_path / "home"
    async with serving(home, "--upstream", "demo", stderr=writer) as program:
        os.close(writer)
        os.close(reader)
        transport = getattr(program.process, "_transport")  # noqa: B009 - no other way
        transport.get_pipe_transport(1).close()
        await program.check_well()
        await until(partial(has_logged, program))
        program.process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(program.process.wait(), PATIENCE)
    assert not (home / "state" / "daemon.json").exists()


@posix
@pytest.mark.case("F43")
@pytest.mark.parametrize("lost", [">&- 2>/dev/full", ">/dev/full 2>&-"])
async def test_start_without_stdout_and_stderr(
    clean_environment: Path, lost: str
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    facts = clean_environment / "state" / "daemon.json"
    serve = f"exec '{sys.executable}' -m byok serve --upstream demo --port 0 {lost}"
    process = await asyncio.create_subprocess_shell(
        serve, cwd=ROOT, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        await until(lambda: facts.exists() or process.returncode is not None, START)
        port = json.loads(facts.read_bytes())["port"]
        health = request(method=b"GET", target=b"/health", token=b"", body=b"")
        assert (await ask(port, filled(health, port, ""))).status == 200
        process.terminate()
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    log = clean_environment / "state" / "log" / "byok.log"
    assert "Traceback" not in log.read_text()


@posix
@pytest.mark.case("F43")
@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        ("version >/dev/full", 1, "No space left"),
        ("prompts show chat --help >/dev/full", 1, "No space left"),
        ("config >/dev/full", 1, "No space left"),
        ("uninstall <&-", 78, "byok uninstall --yes"),
        ("keys list <&-", 0, ""),
    ],
)
def test_a_command_without_its_streams_ends_with_its_own_exit_code(
    clean_environment: Path, command: str, code: int, told: str
) -> None:
    if "/dev/full" in command and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    byok = f"exec '{sys.executable}' -m byok {command}"
    done = subprocess.run(
        ["sh", "-c", byok], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, told in done.stderr) == (code, True)
    assert "Traceback" not in done.stderr
    assert "ignored" not in done.stderr


@posix
@pytest.mark.case("F43")
def test_a_command_that_nobody_reads_says_nothing(clean_environment: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    byok = [sys.executable, "-m", "byok", "version"]
    done = subprocess.run(
        byok, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


# The working folder.

HOSTILE = (
    "byok.toml", "config.toml", ".byok/config.toml", ".byok.toml", "byok/config.toml",
    "state/config.toml",
)  # fmt: skip


@pytest.mark.case("B60", "B96")
async def test_working_folder_files_redirect_nothing_and_keys_are_not_logged(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    repository = tmp_path / "repository"
    async with FakeUpstream() as canary:
        section = f'[upstreams.fake]\nbase_url = "{canary.url}"\nmodel = "m"\n'
        files = dict.fromkeys(HOSTILE, section)
        files[".env"] = (
            f"BYOK_UPSTREAMS__FAKE__BASE_URL={canary.url}\n"
            f"OPENAI_BASE_URL={canary.url}\nBYOK_HOME={repository}\n"
        )
        own = {"completionURL": canary.url, "base_url": canary.url}
        for name in (".vscode/settings.json", ".claude/settings.json"):
            files[name] = json.dumps({"augment.advanced": own, "env": own})
        for name, content in files.items():
            (repository / name).parent.mkdir(parents=True, exist_ok=True)
            (repository / name).write_text(content)
        configure(tmp_path / "home", fake.url)
        said = f"My key is {KEY}, in short."
        fake.play(answer(f"Your key is {KEY}."))
        async with serving(tmp_path / "home", cwd=repository) as program:
            await program.post("/chat", message=said)
            broken = json.dumps({"message": said}).encode()[:-1]
            await program.ask(request(body=broken))
            await program.check_well()  # and logged no key
            await program.ask(request(target=b"/get-models"))
        assert len(fake.requests) == 2
        assert fake.requests[0]["messages"][-1]["content"] == said
        assert canary.requests == canary.list_headers == []


# What is told where.


LOCALES = (
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "", "LANG": "", "PYTHONUTF8": "0", "PYTHONIOENCODING": "cp936"},
)
NOBODY = "127.0.0.1:9"
PROXIES = {
    **dict.fromkeys(("HTTP_PROXY", "http_proxy"), f"http://{NOBODY}"),
    **dict.fromkeys(("HTTPS_PROXY", "https_proxy"), f"http://{NOBODY}"),
    "ALL_PROXY": f"socks5://{NOBODY}",
}


@pytest.mark.case("B107", "F44")
async def test_locale_and_proxy_variables_change_no_byte(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    said = "né \U0001f600 検索 \u2028"
    fake.play(answer(said))

    async def answered(number: int) -> str:
        home = tmp_path / f"home{number}"
        configure(home, fake.url, '[chat]\nsystem_prompt = "Ответь 短く."\n')
        async with serving(home, env=LOCALES[number] | PROXIES) as program:
            body = json.dumps({"message": said}, ensure_ascii=False).encode()
            reply = await program.ask(request(body=body))
            await program.post("/chat", message="x", model="модель")
            await program.check_well()
            assert "модель" in program.log_file.read_text("utf-8")
        return str(reply.json["text"])

    texts = await asyncio.gather(*(answered(n) for n in range(len(LOCALES))))
    assert set(texts) == {said}
    sent = [row["messages"] for row in fake.requests]
    whole = [row for row in sent if row[-1]["content"] == said]
    assert len(whole) == len(LOCALES)
    assert all("Ответь 短く." in row[0]["content"] for row in whole)


# Folders.


@posix
@pytest.mark.case("B104")
@pytest.mark.parametrize("place", ["/proc/byok", "/sys/byok", "/dev/null/byok"])
def test_byok_home_that_cannot_be_made_is_a_message(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("BYOK_HOME", place)
    done = cli("serve", "--upstream", "demo")
    assert (done.code in (1, 78), done.out) == (True, "")
    assert str(Path(place).parent) in done.err


@posix
@pytest.mark.case("B104")
@pytest.mark.parametrize("home", [None, "/", "/no/such/folder"])
def test_home_folder_that_is_odd_is_no_traceback(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, home: str | None
) -> None:
    monkeypatch.delenv("BYOK_HOME")
    monkeypatch.delenv("HOME", raising=False)
    if home:
        monkeypatch.setenv("HOME", home)
    done = cli("config", "path")
    assert (done.code, done.err) == (0, "")
    assert Path(done.out.replace("\n", "")).is_absolute()


@posix
@pytest.mark.case("B103")
@pytest.mark.parametrize(
    "kind", ["link", "empty", "huge", "folder", "another user's", "open"]
)
def test_token_file_that_is_odd_stops_the_start(
    cli: Cli, clean_environment: Path, kind: str
) -> None:
    token = clean_environment / "state" / "token"
    token.parent.mkdir(parents=True)
    words = "words-of-somebody-" * 3
    match kind:
        case "link":
            (token.parent / "other").write_text(words)
            token.symlink_to(token.parent / "other")
        case "empty":
            token.touch(0o600)
        case "huge":
            token.write_text(words * 20_000)
        case "folder":
            token.mkdir()
        case _:
            token.write_text(words)
    if kind not in ("link", "folder"):
        token.chmod(0o640 if kind == "open" else 0o600)
    if kind == "another user's":
        if os.geteuid() != 0:
            pytest.skip("only root can give a file away")
        os.chown(token, 12345, 12345)
    done = cli("serve", "--upstream", "demo", "--port", "0")
    assert (done.code, done.out) == (78, "")
    assert words not in done.err
    assert len(done.err.strip().splitlines()) >= 2  # what it is, and the cure
