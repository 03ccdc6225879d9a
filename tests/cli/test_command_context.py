"""What several commands need: settings of this user, and open services."""

from pathlib import Path

import pytest

from byok.cli.command_context import load, with_services
from byok.core.errors import ConfigError
from byok.core.platform.paths import find_paths
from byok.wiring.services import Services


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_command_settings_come_from_the_users_own_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "workspace"
    for name in ("config.toml", "byok.toml", ".byok.toml", ".env"):
        written(workspace / name, "[server]\nport = 9001\n")
    monkeypatch.chdir(workspace)
    assert load()[0].server.port == 8317
    written(find_paths().config, "[server]\nport = 9002\n")
    assert load()[0].server.port == 9002


def test_command_settings_come_from_a_named_file_instead(tmp_path: Path) -> None:
    written(find_paths().config, "[server]\nport = 9002\n[log]\nlevel = 'debug'\n")
    settings, paths = load(written(tmp_path / "other.toml", "[server]\nport = 9003\n"))
    assert (settings.server.port, settings.log.level) == (9003, "info")
    assert paths == find_paths()


def test_command_options_win_over_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "other.toml", "[server]\nport = 9003\n")
    assert load(path, {"server": {"port": "9004"}})[0].server.port == 9004


def test_command_settings_file_that_is_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        load(tmp_path / "none.toml")


def test_command_services_are_open_while_the_work_runs() -> None:
    async def work(services: Services) -> list[str]:
        return await services.upstreams["demo"].models()

    assert with_services(work, upstream="demo") == ["echo"]


def test_command_error_is_raised_unchanged() -> None:
    async def work(services: Services) -> None:
        raise ConfigError(next(iter(services.upstreams)))

    with pytest.raises(ConfigError, match="demo"):
        with_services(work, upstream="demo")
