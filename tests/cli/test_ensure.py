"""byok serve --ensure beside a daemon that was started otherwise."""

from pathlib import Path

import pytest

from byok.cli.ensure import RequestedOptions, unfulfilled_options
from byok.config import Settings
from byok.daemon.instance import find_instance
from byok.platform.paths import find_paths
from tests.fakes.commands import Cli
from tests.fakes.daemon_thread import daemon_thread
from tests.fakes.project import make_project


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
