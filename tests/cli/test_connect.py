"""byok connect."""

import asyncio
import json
import socket

import pytest

from byok.platform.paths import find_paths
from tests.fakes.commands import Cli
from tests.fakes.daemon_thread import daemon_thread
from tests.fakes.rows import daemon_rows

CLIENTS = ("vscode", "jetbrains", "cli", "sdk")
NAMES = {
    "vscode": ("augment.advanced.completionURL", "augment.advanced.apiToken"),
    "jetbrains": ("completionURL", "apiToken"),
    "cli": ("AUGMENT_API_URL", "AUGMENT_API_TOKEN"),
    "sdk": ("AUGMENT_API_URL", "AUGMENT_API_TOKEN"),
}


def write_settings(text: str) -> None:
    path = find_paths().config
    path.parent.mkdir(parents=True)
    path.write_text(text)
    path.chmod(0o600)


@pytest.mark.parametrize("client", CLIENTS)
def test_connect_without_a_daemon_gives_the_default_port_and_says_so(
    cli: Cli, client: str
) -> None:
    token = cli("token").out.strip()
    done = cli("connect", client, "--json")
    assert done.code == 0
    url = "http://127.0.0.1:8317"
    assert json.loads(done.out) == dict(zip(NAMES[client], (url, token), strict=True))
    assert "byok is not running" in done.err


async def test_connect_with_a_daemon_gives_its_port(cli: Cli) -> None:
    async with daemon_rows() as rows:
        for client in CLIENTS:
            done = await asyncio.to_thread(cli, "connect", client, "--json")
            told = json.loads(done.out)[NAMES[client][0]]
            assert (told, done.err) == (f"http://127.0.0.1:{rows.port}", "")


async def test_connect_refuses_what_does_not_prove_to_be_the_daemon(
    cli: Cli,
) -> None:
    async with daemon_rows() as rows:
        rows.honest = False
        done = await asyncio.to_thread(cli, "connect", "cli")
    assert (done.code, done.out) == (1, "")
    assert "the daemon does not answer" in done.err


def test_connect_port_of_the_settings_is_the_default(cli: Cli) -> None:
    write_settings("[server]\nport = 9123\n")
    assert "http://127.0.0.1:9123" in cli("connect", "cli").out


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:subprocess:ResourceWarning")  # it outlives byok
def test_connect_starts_a_daemon_if_wanted(cli: Cli) -> None:
    write_settings("[upstreams.demo]\n[server]\nport = 0\n")
    assert "With --start" in cli("connect", "sdk").err
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


def test_connect_tells_that_the_port_for_a_new_daemon_is_taken(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        write_settings(f"[upstreams.demo]\n[server]\nport = {port}\n")
        done = cli("connect", "cli", "--start")
    assert (done.code, done.out) == (69, "")
    assert str(port) in done.err


@pytest.mark.parametrize("client", ["vscode-insiders", "vscodium", "cursor"])
def test_connect_prints_the_same_for_editors_like_vscode(cli: Cli, client: str) -> None:
    assert cli("connect", client).out == cli("connect", "vscode").out


MODEL_CLIENTS = ("codex", "opencode", "aider", "continue")


@pytest.mark.parametrize("client", MODEL_CLIENTS)
def test_connect_of_a_client_with_a_model_needs_one(cli: Cli, client: str) -> None:
    done = cli("connect", client)
    assert (done.code, done.out) == (78, "")
    assert "--model M" in done.err
    path = find_paths().config
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('[upstreams.demo]\n[routing]\ndefault = "byok:demo:echo"\n')
    path.chmod(0o600)
    assert "byok:demo:echo" in cli("connect", client).out
    chosen = cli("connect", client, "--model", "byok:box:m")
    assert "byok:box:m" in chosen.out
    assert "http://127.0.0.1:8317/v1" in chosen.out
    values = json.loads(cli("connect", client, "--model", "m", "--json").out)
    assert "http://127.0.0.1:8317/v1" in str(values)


def test_connect_with_a_daemon_names_its_default_model(cli: Cli) -> None:
    with daemon_thread():
        assert "byok:demo:echo" in cli("connect", "aider").out


@pytest.mark.parametrize("client", ["cli", "sdk"])
def test_connect_variables_are_printed_for_a_shell(cli: Cli, client: str) -> None:
    done = cli("connect", client)
    token = cli("token").out.strip()
    assert done.out.splitlines() == [
        "export AUGMENT_API_URL=http://127.0.0.1:8317",
        f"export AUGMENT_API_TOKEN={token}",
    ]
    assert "Set " in done.err


@pytest.mark.parametrize("client", ["vscode", "jetbrains"])
def test_connect_settings_are_json_with_a_remark_on_stderr(
    cli: Cli, client: str
) -> None:
    done = cli("connect", client)
    assert set(json.loads(done.out)) == set(NAMES[client])
    assert "settings" in done.err
