"""byok serve, and what it says beside a daemon that was started otherwise."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from byok.cli.daemon_main import RequestedOptions, unfulfilled_options
from byok.core.daemon.instance import find_instance, only_instance
from byok.core.platform.paths import find_paths
from byok.settings import Settings
from tests.fakes.commands import Cli
from tests.fakes.daemon_thread import daemon_thread
from tests.fakes.patience import PATIENCE
from tests.fakes.program import ROOT, serving
from tests.fakes.project import make_project
from tests.fakes.upstream import FakeUpstream

READY = re.compile(r"byok is listening on (http://127\.0\.0\.1:(\d+))\n")


def url_of(line: str) -> str:
    found = READY.fullmatch(line)
    assert found, f"the first line is {line!r}"
    return found[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.case("F39")
def test_one_line_on_stdout_then_it_serves_until_a_signal(
    number: signal.Signals,
) -> None:
    env = {"BYOK_OF_ANOTHER_PROGRAM": "x"}
    with serving("--upstream", "demo", "--port", "0", env=env) as (process, line):
        url = url_of(line)
        with urllib.request.urlopen(f"{url}/health", timeout=PATIENCE) as answer:
            assert json.load(answer) == {"status": "ok"}
        facts = json.loads(find_paths().daemon.read_text())
        assert (facts["pid"], facts["port"]) == (process.pid, int(url.split(":")[2]))
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, "")
    assert "upstream: demo (chosen by --upstream)" in err
    assert "watch:    byok dashboard\n" in err
    assert "model:    echo" in err
    assert "byok connect vscode | jetbrains | cli | sdk" in err
    assert "unknown environment variable BYOK_OF_ANOTHER_PROGRAM" in err
    assert "Traceback" not in err
    assert not find_paths().daemon.exists()


def test_only_one_daemon_runs_and_others_find_it(cli: Cli) -> None:
    with daemon_thread() as daemon:
        second = cli("serve", "--upstream", "demo", "--port", "0")
        assert (second.code, second.out) == (75, "")
        assert f"pid {os.getpid()}, port {daemon.port}" in second.err
        assert "byok status" in second.err
        found = cli("connect", "cli", "--json")
        assert json.loads(found.out)["AUGMENT_API_URL"] == daemon.url


def test_ensure_does_nothing_where_the_daemon_runs(cli: Cli) -> None:
    with daemon_thread() as daemon:
        second = cli("serve", "--ensure", "--port", "0")
        line = f"byok is listening on {daemon.url}\n"
        assert (second.code, second.out, second.err) == (0, line, "")


def test_ensure_starts_the_daemon_where_none_runs() -> None:
    with serving("--ensure", "--upstream", "demo", "--port", "0") as (process, line):
        url_of(line)
        assert process.poll() is None


def test_ensure_believes_only_the_daemon_itself(cli: Cli, squatter_file: str) -> None:
    with only_instance(find_paths()):
        find_paths().daemon.write_text(squatter_file)
        done = cli("serve", "--ensure", "--upstream", "demo", "--port", "0")
    assert (done.code, done.out) == (75, "")


@pytest.fixture
def squatter_file() -> str:
    """What stands where a daemon writes down its port: nobody listens there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    facts = {"pid": 1, "port": port, "instance": "a", "started": 0.0}
    return json.dumps(facts)


async def test_sighup_reloads_keys_and_ends_nothing(
    fake: FakeUpstream, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_text("first-key-of-all")
    env = {"BYOK_UPSTREAMS__FAKE__BASE_URL": fake.url}
    env["BYOK_UPSTREAMS__FAKE__API_KEY_CMD"] = json.dumps(["cat", str(key)])

    async def key_sent(url: str) -> str:
        before = len(fake.headers)
        await asyncio.to_thread(_chat, url)
        return fake.headers[before]["Authorization"]

    with serving("--port", "0", env=env) as (process, line):
        url = url_of(line)
        assert await key_sent(url) == "Bearer first-key-of-all"
        key.write_text("second-key-of-all")
        assert await key_sent(url) == "Bearer first-key-of-all"
        process.send_signal(signal.SIGHUP)
        async with asyncio.timeout(PATIENCE):
            while await key_sent(url) != "Bearer second-key-of-all":
                await asyncio.sleep(0.02)
        assert process.poll() is None


def _chat(url: str) -> None:
    token = find_paths().token.read_text().strip()
    request = urllib.request.Request(
        f"{url}/chat",
        b'{"message": "x"}',
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        answer.read()


def test_token_that_was_rotated_counts_at_once(cli: Cli) -> None:
    def status(url: str, token: str) -> int:
        request = urllib.request.Request(
            f"{url}/get-models", b"{}", {"Authorization": f"Bearer {token}"}
        )
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    with daemon_thread() as daemon:
        url = daemon.url
        old = cli("token").out.strip()
        assert status(url, old) == 200
        new = cli("token", "rotate").out.strip()
        assert (status(url, old), status(url, new)) == (401, 200)


def test_serve_reports_a_taken_port(cli: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = cli("serve", "--upstream", "demo", "--port", port)
    assert (done.code, done.out) == (69, "")
    assert str(port) in done.err


def test_serve_reports_an_unknown_upstream_before_the_port_is_tried(
    cli: Cli,
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = cli("serve", "--upstream", "olama", "--port", port)
    assert (done.code, done.out) == (78, "")


def test_serve_reports_an_unknown_default_model_before_the_ready_line(cli: Cli) -> None:
    done = cli("serve", "--upstream", "demo", "--port=0", "--model", "byok:a:b")
    assert (done.code, done.out) == (78, "")
    assert "names an upstream that is not configured" in done.err


@pytest.mark.parametrize("port", ["80", "65536", "abc", "-1", "1e4"])
@pytest.mark.case("B99")
def test_serve_refuses_an_invalid_port(cli: Cli, port: str) -> None:
    done = cli("serve", "--upstream", "demo", f"--port={port}")
    assert (done.code, done.out) == (78, "")
    assert "the command line: server.port" in done.err


@pytest.mark.parametrize("option", ["--host", "--bind", "--listen"])
@pytest.mark.case("B99")
def test_serve_has_no_option_to_listen_beyond_this_machine(
    cli: Cli, option: str
) -> None:
    done = cli("serve", "--upstream", "demo", option, "0.0.0.0")
    assert (done.code, done.out) == (2, "")
    assert "No such option" in done.err


@pytest.mark.skipif(shutil.which("rg") is None, reason="scripts/setup installs it")
def test_serve_script_runs_byok_in_another_virtual_environment(tmp_path: Path) -> None:
    """`BYOK_VENV=... scripts/serve` hands that variable on to byok."""
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    summed = (ROOT / "pyproject.toml").read_bytes()
    stamp = subprocess.run(["cksum"], input=summed, capture_output=True, check=True)
    (venv / ".byok-run").write_bytes(stamp.stdout)  # nothing is to be installed
    for name, arguments in (("python", ""), ("byok", "-m byok")):
        program = venv / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {arguments} "$@"\n')
        program.chmod(0o755)
    with serving(
        "--upstream",
        "demo",
        "--port",
        "0",
        env={"BYOK_VENV": str(venv)},
        program=[str(ROOT / "scripts" / "serve")],
    ) as (process, line):
        url_of(line)
        process.terminate()
        err = process.communicate(timeout=PATIENCE)[1]
    assert (process.returncode, "BYOK_VENV" in err) == (0, False)


async def test_serve_uses_the_upstream_of_the_settings(
    fake: FakeUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYOK_UPSTREAMS__FAKE__BASE_URL", fake.url)

    def introduction() -> str:
        with serving("--port", "0", "--model", "big") as (process, line):
            url_of(line)
            process.terminate()
            return process.communicate(timeout=PATIENCE)[1]

    err = await asyncio.to_thread(introduction)
    assert "upstream: fake (first of the settings)" in err
    assert "model:    big" in err


def test_serve_reports_an_invalid_workspace_before_anything_runs(
    cli: Cli, tmp_path: Path
) -> None:
    done = cli("serve", "--upstream", "demo", "--workspace", tmp_path / "none")
    assert done.code == 78
    assert "none" in done.err


def test_ensure_names_options_that_the_running_daemon_does_not_fulfil(
    cli: Cli, tmp_path: Path
) -> None:
    project, other = make_project(tmp_path / "bakery"), tmp_path / "other"
    other.mkdir()
    with daemon_thread(project) as daemon:
        port, line = daemon.port, f"byok is listening on {daemon.url}\n"
        same = cli(
            *("serve", "--ensure", "--upstream", "demo", "--model", "echo"),
            *("--port", port, "--workspace", project, "--config", _settings()),
        )
        assert (same.code, same.out, same.err) == (0, line, "")
        done = cli(
            *("serve", "--ensure", "--upstream", "ollama", "--model", "zz"),
            *("--port", 8500, "--workspace", project, "--workspace", other),
        )
    assert (done.code, done.out) == (0, line)
    named, cure = done.err.splitlines()
    assert named.endswith(
        f": --upstream ollama --model zz --port 8500 --workspace {other}"
    )
    assert "byok stop" in cure


def _settings() -> Path:
    file = find_paths().config
    file.touch(mode=0o600)
    return file


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "http://127.0.0.1:8/v1"])
def test_ensure_tells_two_upstream_urls_apart(url: str) -> None:
    started = "http://127.0.0.1:9/v1"
    with daemon_thread(upstream=started):
        daemon = find_instance(find_paths())
        assert daemon is not None
        found = unfulfilled_options(daemon, RequestedOptions(upstream=url), Settings())
    assert found == ([] if url == started else [f"--upstream {url}"])
