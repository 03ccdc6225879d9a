"""Another user's program holds byok's port: what do the commands give it?"""

import os
from pathlib import Path

import pytest

from byok.core.daemon.token import read_token
from byok.core.platform.paths import find_paths
from tests.fakes.commands import Cli, Done
from tests.fakes.program import run_byok
from tests.fakes.second_user import squatting

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
