"""byok connect: settings of clients, as commands show and make them."""

import json
import os
import shlex
import socket
import sys
from pathlib import Path

import pytest

from byok.core.daemon.token import read_token
from byok.core.platform.paths import find_paths
from tests.fakes.commands import Cli, Done
from tests.fakes.daemon import daemon_thread, write_settings
from tests.fakes.program import run_byok
from tests.fakes.second_user import squatting

CLIENTS = ("vscode", "jetbrains", "cli", "sdk")
NAMES = {
    "vscode": ("augment.advanced.completionURL", "augment.advanced.apiToken"),
    "jetbrains": ("completionURL", "apiToken"),
}


@pytest.mark.case("B162")
def test_connect_gives_the_token_to_nobody_if_no_daemon_runs(cli: Cli) -> None:
    write_settings("[server]\nport = 0\n")
    token = cli("token").out.strip()
    for client in CLIENTS:
        for options in ((), ("--write", "--yes"), ("--dry-run",)):
            done = cli("connect", client, *options)
            assert (done.code, done.out) == (3, ""), (client, options)
            assert "--start" in done.err
            assert token not in done.err


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.case("B162")
def test_a_stranger_on_the_port_is_named_and_gets_no_token(cli: Cli, host: str) -> None:
    token = read_token(find_paths().token)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server:
        write_settings(f"[server]\nport = {server.getsockname()[1]}\n")
        for words in ("connect cli", "connect vscode --write --yes", "token"):
            done = cli(*words.split())
            assert (done.code, done.out) == (69, ""), words
            assert "byok token rotate" in done.err
            assert token not in done.err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:subprocess:ResourceWarning")  # it outlives byok
def test_connect_starts_a_daemon_if_wanted(cli: Cli) -> None:
    write_settings("[upstreams.demo]\n[server]\nport = 0\n")
    done = cli("connect", "sdk", "--start", "--json")
    try:
        assert "runs in the background now. To end it: byok stop" in done.err
        again = cli("connect", "sdk", "--start", "--json")
        assert (again.out, again.err) == (done.out, "")
        url = json.loads(done.out)["AUGMENT_API_URL"]
        assert url in cli("status").out
    finally:
        stopped = cli("stop")
    assert "byok has ended" in stopped.out


MODEL_CLIENTS = ("codex", "opencode", "aider", "continue")


@pytest.mark.parametrize("client", MODEL_CLIENTS)
def test_connect_of_a_client_with_a_model_names_one(cli: Cli, client: str) -> None:
    with daemon_thread() as daemon:
        assert "byok:demo:echo" in cli("connect", client).out
        chosen = cli("connect", client, "--model", "byok:box:m")
        assert "byok:box:m" in chosen.out
        assert f"{daemon.url}/v1" in chosen.out
        values = json.loads(cli("connect", client, "--model", "m", "--json").out)
        assert f"{daemon.url}/v1" in str(values)


@pytest.mark.parametrize("client", ["cli", "sdk"])
def test_connect_variables_are_printed_for_a_shell(cli: Cli, client: str) -> None:
    with daemon_thread() as daemon:
        done = cli("connect", client)
        token = cli("token").out.strip()
    assert done.out.splitlines() == [
        f"export AUGMENT_API_URL={daemon.url}",
        f"export AUGMENT_API_TOKEN={token}",
    ]
    assert "Set " in done.err


@pytest.mark.parametrize("client", ["vscode", "jetbrains"])
def test_connect_settings_are_json_with_a_remark_on_stderr(
    cli: Cli, client: str
) -> None:
    with daemon_thread():
        done = cli("connect", client)
    assert set(json.loads(done.out)) == set(NAMES[client])
    assert "settings" in done.err


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    return tmp_path


def test_without_a_terminal_the_whole_command_is_told(home: Path, cli: Cli) -> None:
    file = home / "own.json"
    file.write_text("{}")
    words = ("connect", "vscode", "--write", "--file", str(file))
    with daemon_thread():
        asked = [cli(*words)]
        assert cli(*words, "--yes").code == 0
        asked.append(cli("disconnect", "vscode", "--file", file))
    for done, told in zip(
        asked, (words, ("disconnect", "vscode", "--file", str(file))), strict=True
    ):
        whole = shlex.join(["byok", *told, "--yes"])
        assert whole in done.err.replace("\n", " ")


def test_what_cannot_be_written_is_told_with_the_other_ways(
    home: Path, cli: Cli
) -> None:
    with daemon_thread():
        done = cli("connect", "vscode", "--write", "--yes")
    assert done.code == 78
    told = done.err.replace("\n", " ")
    assert "--file PATH" in told and "without --write" in told
    if sys.platform == "linux":
        assert f"mkdir -p '{home / 'settings' / 'Code' / 'User'}'" in told


posix = pytest.mark.skipif(os.name != "posix", reason="there are other users on POSIX")
COMMANDS = (
    *("connect cli", "connect vscode", "connect sdk --json", "connect cli --start"),
    *("connect vscode --write --yes --file FILE", "connect codex --model m"),
    *("token", "status", "dashboard --link", "serve", "serve --ensure", "doctor"),
    *("stop", "restart", "reload", "models", "keys list", "index status", "capture on"),
    *("index add WORK", "search bread -w WORK", "usage", "log"),
)


@posix
@pytest.mark.slow
@pytest.mark.case("B162")
def test_whoever_holds_the_port_first_hears_no_secret(
    clean_environment: Path, tmp_path: Path, cli: Cli
) -> None:
    home, log, file = clean_environment, tmp_path / "heard", tmp_path / "settings.json"
    work = tmp_path / "work"
    work.mkdir()
    (work / "bread.py").write_text("def bake_bread():\n    pass\n")
    file.write_text("{}")
    token = read_token(find_paths().token)
    secrets = [token, read_token(find_paths().owner_secret)]
    with squatting(log) as port:
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(
            f"[server]\nport = {port}\n[upstreams.demo]\n"
        )
        (home / "config.toml").chmod(0o600)
        told = {}
        for words in COMMANDS:
            line = words.replace("FILE", str(file)).replace("WORK", str(work)).split()
            if line[0] == "serve":  # it changes its own process
                ended = run_byok(*line)
                done = Done(ended.returncode, ended.stdout, ended.stderr)
            else:
                done = cli(*line)
            told[words] = done
            assert token not in done.out + done.err, words
            assert "Traceback" not in done.err, words
        for words in ("connect cli", "connect cli --start", "token", "serve"):
            assert told[words].code == 69, words
            assert "byok token rotate" in told[words].err, words
        assert "byok token rotate" in told["doctor"].out
        secrets.append(read_token(find_paths().owner_secret))
    heard = log.read_bytes()
    assert [value for value in secrets if value.encode() in heard] == []
    assert b"byok_owner_" not in heard
    assert file.read_text() == "{}"
