"""byok config."""

import json
from pathlib import Path

import pytest

from byok.core.platform.paths import find_paths
from byok.settings import example
from tests.fakes.commands import Cli
from tests.fakes.daemon import daemon_thread, write_settings
from tests.fakes.disk import fill, mounted

CANARY = "sk-canary0123456789"
FULL = f"""
[server]
port = 9123
[network]
proxy = "http://me:{CANARY}@proxy.example:3128"
[chat]
headers = {{ X-Everybody = "{CANARY}" }}
[upstreams.box]
base_url = "https://box.example"
api_key_cmd = ["pass", "show", "{CANARY}"]
headers = {{ X-Team = "{CANARY}" }}
proxy = "http://{CANARY}@proxy.example:3128"
"""


def test_config_check_tells_a_missing_file_from_a_good_one(cli: Cli) -> None:
    missing = cli("config", "check")
    assert (missing.code, missing.out.partition(" ")[2]) == (
        0,
        "does not exist: defaults apply\n",
    )
    write_settings(FULL)
    good = cli("config", "check")
    assert (good.code, good.out) == (0, f"{find_paths().config}: valid\n")


def test_config_init_writes_the_example_and_never_over_another_file(cli: Cli) -> None:
    file = find_paths().config
    made = cli("config", "init")
    assert (made.code, made.out) == (0, f"{file}\n")
    assert file.read_text("utf-8") == example()
    assert file.stat().st_mode & 0o077 == 0
    assert cli("config", "check").out == f"{file}: valid\n"
    file.write_text("[server]\nport = 9123\n")
    again = cli("config", "init")
    assert (again.code, again.out) == (78, "")
    assert f"{file} already exists" in again.err
    assert file.read_text() == "[server]\nport = 9123\n"


def test_config_init_leaves_nothing_on_a_full_disk(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty file would be taken for settings, and never be written again."""
    with mounted(tmp_path / "disk", "256k") as disk:
        (disk / "byok").mkdir()
        monkeypatch.setenv("BYOK_HOME", str(disk / "byok"))
        fill(disk / "filler")
        done = cli("config", "init")
        assert (done.code, done.out) == (1, "")
        assert "Free some disk space" in done.err
        assert "Traceback" not in done.err
        (disk / "filler").unlink()
        assert cli("config", "init").code == 0


def test_config_check_refuses_what_serve_refuses(cli: Cli) -> None:
    """Both tell of a default model whose upstream does not exist."""
    write_settings('[upstreams.demo]\n[routing]\ndefault = "byok:gone:m"\n')
    checked, served = cli("config", "check"), cli("serve", "--port", "0")
    assert (checked.code, checked.out) == (served.code, served.out) == (78, "")
    assert served.err.endswith(checked.err)  # serve says first that it starts
    assert "default model 'byok:gone:m'" in checked.err


def test_config_file_may_be_another_one(cli: Cli) -> None:
    write_settings('[server]\nhost = "0.0.0.0"\n')
    assert cli("config", "check").code == 78
    other = find_paths().config.with_name("other.toml")
    other.write_text("[server]\nport = 9124\n")
    other.chmod(0o600)
    assert cli("config", "check", "--config", other).code == 0


def test_config_show_prints_what_the_running_daemon_uses(cli: Cli) -> None:
    with daemon_thread():
        write_settings(FULL)
        done = cli("config", "show")
        assert (done.code, done.err) == (0, "")
        assert json.loads(done.out)["server"]["port"] == 0
        other = cli("config", "show", "--config", find_paths().config)
        assert json.loads(other.out)["server"]["port"] == 9123


def test_config_show_prints_settings_without_secrets(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(FULL)
    monkeypatch.setenv("BYOK_CHAT__TEMPERATURE", "0.5")
    done = cli("config", "show")
    assert done.code == 0
    assert done.err == "byok is not running; this comes from the settings file.\n"
    assert CANARY not in done.out
    shown = json.loads(done.out)
    assert shown["server"]["port"] == 9123
    assert shown["chat"]["temperature"] == 0.5
    assert shown["upstreams"]["box"]["base_url"] == "https://box.example"
