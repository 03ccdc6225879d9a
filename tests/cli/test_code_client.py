"""What the commands share that ask about code."""

from pathlib import Path

import pytest

from byok.cli.code_client import folders, whole, with_client
from byok.cli.daemon_client.client import LocalClient
from byok.core.errors import ConfigError
from byok.core.routing import Service


def test_ask_without_a_daemon_and_without_data_makes_nothing(
    clean_environment: Path,
) -> None:
    async def work(client: LocalClient) -> object:
        return (await client.ask(Service.INDEX_STATUS, {}))["workspaces"]

    assert with_client(work) == ()
    assert not (clean_environment / "data").exists()


def test_ask_reads_settings_only_where_this_process_answers(tmp_path: Path) -> None:
    async def nothing(client: LocalClient) -> int:
        return 7

    async def something(client: LocalClient) -> object:
        return await client.ask(Service.INDEX_STATUS, {})

    missing = tmp_path / "none.toml"
    assert with_client(nothing, config=missing) == 7
    with pytest.raises(ConfigError, match="does not exist"):
        with_client(something, config=missing)


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
