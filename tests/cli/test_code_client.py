"""What commands share: the user's own settings, and paths as they are typed."""

from pathlib import Path

import pytest

from byok.cli.code_client import folders, whole
from byok.cli.command_context import load
from tests.fakes.daemon import write_settings


def test_ask_path_is_absolute_and_only_its_last_name_may_be_a_symlink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    (real / "other").symlink_to("nowhere")
    monkeypatch.chdir(tmp_path)
    assert whole(Path("link/other")) == real / "other"
    assert whole(Path("real/../link")) == tmp_path / "link"
    assert folders([Path("link"), Path()]) == [real, tmp_path]
    assert folders(None) == []


def test_command_settings_come_from_the_users_own_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "workspace"
    for name in ("config.toml", "byok.toml", ".byok.toml", ".env"):
        write_settings("[server]\nport = 9001\n", workspace / name)
    monkeypatch.chdir(workspace)
    assert load()[0].server.port == 8317
    write_settings("[server]\nport = 9002\n")
    assert load()[0].server.port == 9002
