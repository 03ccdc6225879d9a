"""byok serve, and what it says beside a daemon that was started otherwise."""

import json
import os
import re
import signal
import urllib.request
from pathlib import Path

import pytest

from byok.core.daemon.instance import only_instance
from byok.core.platform.paths import find_paths
from tests.fakes.commands import Cli
from tests.fakes.daemon import daemon_thread
from tests.fakes.patience import PATIENCE
from tests.fakes.ports import free_port
from tests.fakes.program import serving_sync
from tests.fakes.project import make_project

READY = re.compile(r"byok is listening on (http://127\.0\.0\.1:(\d+))\n")


def url_of(line: str) -> str:
    found = READY.fullmatch(line)
    assert found, f"the first line is {line!r}"
    return found[1]


@pytest.mark.case("F39")
def test_one_line_on_stdout_then_it_serves_until_a_signal() -> None:
    env = {"BYOK_OF_ANOTHER_PROGRAM": "x"}
    with serving_sync("--upstream", "demo", "--port", "0", env=env) as (process, line):
        url = url_of(line)
        with urllib.request.urlopen(f"{url}/health", timeout=PATIENCE) as answer:
            assert json.load(answer) == {"status": "ok"}
        facts = json.loads(find_paths().daemon.read_text())
        assert (facts["pid"], facts["port"]) == (process.pid, int(url.split(":")[2]))
        process.send_signal(signal.SIGTERM)
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


def test_ensure_believes_only_the_daemon_itself(cli: Cli, squatter_file: str) -> None:
    with only_instance(find_paths()):
        find_paths().daemon.write_text(squatter_file)
        done = cli("serve", "--ensure", "--upstream", "demo", "--port", "0")
    assert (done.code, done.out) == (75, "")


@pytest.fixture
def squatter_file() -> str:
    """What stands where a daemon writes down its port: nobody listens there."""
    facts = {"pid": 1, "port": free_port(), "instance": "a", "started": 0.0}
    return json.dumps(facts)


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


@pytest.mark.parametrize("port", ["80", "abc"])
@pytest.mark.case("B99")
def test_serve_refuses_an_invalid_port(cli: Cli, port: str) -> None:
    done = cli("serve", "--upstream", "demo", f"--port={port}")
    assert (done.code, done.out) == (78, "")
    assert "the command line: server.port" in done.err


@pytest.mark.case("B99")
def test_serve_has_no_option_to_listen_beyond_this_machine(cli: Cli) -> None:
    done = cli("serve", "--upstream", "demo", "--host", "0.0.0.0")
    assert (done.code, done.out) == (2, "")
    assert "No such option" in done.err


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
