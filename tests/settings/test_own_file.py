"""The user's settings file is replaced at once, after a backup."""

import os
from functools import partial
from pathlib import Path

import pytest

from byok.core.errors import ConfigError
from byok.core.platform.paths import Paths, find_paths
from byok.settings import load_settings
from byok.settings.own_file import read_own_settings, write_own_settings

OLD, NEW = b"# old\n", b"# old\n[server]\nport = 1\n"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return find_paths()


def put(paths: Paths, mode: int = 0o644) -> None:
    paths.config.parent.mkdir(parents=True, exist_ok=True)
    paths.config.write_bytes(OLD)
    paths.config.chmod(mode)


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_new_file_is_the_owners_alone(paths: Paths, tmp_path: Path) -> None:
    file = read_own_settings(paths.config, tmp_path)
    assert (file.raw, paths.config.parent.exists()) == (None, False)
    assert write_own_settings(paths, file, NEW) is None
    assert paths.config.read_bytes() == NEW
    if os.name == "posix":
        assert mode_of(paths.config) == 0o600


def test_the_former_file_is_saved(paths: Paths, tmp_path: Path) -> None:
    put(paths)
    file = read_own_settings(paths.config, tmp_path)
    backup = write_own_settings(paths, file, NEW, clock=lambda: 0.0)
    assert backup is not None
    assert backup.name == "config-19700101T000000Z.toml"
    assert (backup.read_bytes(), paths.config.read_bytes()) == (OLD, NEW)
    if os.name == "posix":
        assert (mode_of(backup), mode_of(paths.config)) == (0o600, 0o600)
    names = sorted(path.name for path in paths.config.parent.iterdir())
    assert names == ["config.toml", "state"]
    assert find_paths().folders == paths.folders  # the backup is one of byok's own


def test_an_editor_may_take_the_new_file_away_at_once(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then it is the owner's alone."""
    put(paths)
    file = read_own_settings(paths.config, tmp_path)
    replace, modes = Path.replace, list[int]()

    def take_away(self: Path, target: Path) -> Path:
        done = replace(self, target)
        if target == paths.config:
            modes.append(mode_of(target))
            target.unlink()
        return done

    monkeypatch.setattr(Path, "replace", take_away)
    assert write_own_settings(paths, file, NEW) is not None
    if os.name == "posix":
        assert modes == [0o600]


def test_what_byok_could_not_read_again_is_not_written(
    paths: Paths, tmp_path: Path
) -> None:
    put(paths)
    file = read_own_settings(paths.config, tmp_path)
    for content in (b"#" * 70_000, b"port ="):
        with pytest.raises(ConfigError):
            write_own_settings(paths, file, content)
    assert paths.config.read_bytes() == OLD
    assert load_settings(paths.config).server.port


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such mode")
@pytest.mark.parametrize("mode", [0o660, 0o602])
def test_what_others_may_have_written_is_not_taken_over(
    paths: Paths, tmp_path: Path, mode: int
) -> None:
    put(paths, mode=mode)
    with pytest.raises(ConfigError, match="can be changed by other users") as failure:
        read_own_settings(paths.config, tmp_path)
    assert "chmod go-w" in failure.value.hint
    assert mode_of(paths.config) == mode


def test_a_link_is_refused_where_none_is_to_be_followed(
    paths: Paths, tmp_path: Path
) -> None:
    put(paths)
    paths.config.rename(tmp_path / "elsewhere.toml")
    paths.config.symlink_to(tmp_path / "elsewhere.toml")
    assert read_own_settings(paths.config, tmp_path).raw == OLD
    with pytest.raises(ConfigError, match="is a link"):
        read_own_settings(paths.config, tmp_path, follows_link=False)


def test_a_bounded_number_of_former_files_is_kept(paths: Paths, tmp_path: Path) -> None:
    """And nothing is removed that is named in another way."""
    put(paths)
    folder = paths.state_dir / "settings_backups"
    for second in range(60):
        file = read_own_settings(paths.config, tmp_path)
        content = b"# %d\n" % second
        write_own_settings(paths, file, content, clock=partial(float, second))
        if not second:
            (folder / "config-mine.toml").write_bytes(OLD)
    kept = sorted(path.name for path in folder.iterdir())
    assert len(kept) == 51
    assert kept[0] == "config-19700101T000010Z.toml"
    assert kept[-1] == "config-mine.toml"
