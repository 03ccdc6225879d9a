"""byok token."""

import re
from pathlib import Path

import pytest

from byok.core.platform.paths import find_paths
from tests.fakes.commands import Cli
from tests.fakes.daemon import daemon_thread

pytestmark = pytest.mark.usefixtures("unused_port")


def test_the_token_and_a_newline_are_printed_and_nothing_else(cli: Cli) -> None:
    done = cli("token")
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}\n", done.out)
    assert done.out.strip() == find_paths().token.read_text().strip()


@pytest.mark.case("B103")
def test_a_token_that_others_can_read_is_not_used(cli: Cli) -> None:
    token = cli("token").out.strip()
    path = find_paths().token
    path.chmod(0o644)
    done = cli("token")
    assert (done.code, done.out) == (78, "")
    assert "chmod 600" in done.err
    assert token not in done.err


def test_the_metrics_have_a_token_of_their_own(cli: Cli) -> None:
    client, metrics = cli("token").out, cli("token", "--metrics").out
    assert client != metrics == cli("token", "show", "--metrics").out
    assert metrics.strip() == find_paths().metrics_token.read_text().strip()
    rotated = cli("token", "rotate", "--metrics")
    assert rotated.out == cli("token", "--metrics").out != metrics
    assert "Prometheus" in rotated.err
    assert cli("token").out == client


def test_rotating_names_the_commands_that_renew_what_byok_wrote(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    files = {"cursor": tmp_path / "cursor.json", "codex": tmp_path / "codex.toml"}
    with daemon_thread():
        for client, file in files.items():
            words = ("connect", client, "--mcp", "--write", "--file", file)
            assert cli(*words, "--yes").code == 0
        old = cli("token").out.strip()
        rotated = cli("token", "rotate")
        assert rotated.code == 0
        for client, file in files.items():
            command = f"connect {client} --mcp --write --file {file}"
            assert f"byok {command}" in rotated.err
            assert old in file.read_text()
            assert cli(*command.split(), "--yes").code == 0
            assert rotated.out.strip() in file.read_text()
