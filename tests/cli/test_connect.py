"""byok connect: settings of clients, as commands show and make them."""

import json
import shlex
import socket
from pathlib import Path

import pytest

from byok.core.daemon.token import read_token
from byok.core.platform.paths import find_paths
from tests.fakes.commands import Cli
from tests.fakes.daemon import daemon_thread, write_settings

CLIENTS = ("vscode", "jetbrains", "cli", "sdk")
NAMES = {
    "vscode": ("augment.advanced.completionURL", "augment.advanced.apiToken"),
    "jetbrains": ("completionURL", "apiToken"),
    "cli": ("AUGMENT_API_URL", "AUGMENT_API_TOKEN"),
    "sdk": ("AUGMENT_API_URL", "AUGMENT_API_TOKEN"),
}


@pytest.mark.case("B162")
def test_connect_gives_the_token_to_nobody_if_no_daemon_runs(cli: Cli) -> None:
    write_settings("[server]\nport = 0\n")
    token = cli("token").out.strip()
    for client in CLIENTS:
        for options in ((), ("--write", "--yes"), ("--dry-run",)):
            done = cli("connect", client, *options)
            assert (done.code, done.out) == (1, ""), (client, options)
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


@pytest.mark.parametrize("verb", ["connect", "disconnect"])
def test_without_a_terminal_the_whole_command_is_told(
    home: Path, cli: Cli, verb: str
) -> None:
    file = home / "own.json"
    file.write_text("{}")
    if verb == "disconnect":
        with daemon_thread():
            done = cli("connect", "vscode", "--write", "--yes", "--file", file)
        assert done.code == 0
    write = ["--write"] if verb == "connect" else []
    with daemon_thread():
        done = cli(verb, "vscode", *write, "--file", file)
    told = shlex.join(["byok", verb, "vscode", *write, "--file", str(file), "--yes"])
    assert told in done.err.replace("\n", " ")


def test_what_cannot_be_written_is_told_with_the_other_ways(
    home: Path, cli: Cli
) -> None:
    with daemon_thread():
        done = cli("connect", "vscode", "--write", "--yes")
    assert done.code == 78
    told = done.err.replace("\n", " ")
    assert "--file PATH" in told and "without --write" in told
