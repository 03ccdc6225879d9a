"""BYOK_HOME: folders of byok's own are used, others are refused untouched."""

import json
import os
from pathlib import Path

import pytest

from byok.core.errors import ConfigError
from byok.core.platform.paths import check_home, check_owner, find_paths

MODELS = json.dumps({"ollama http://127.0.0.1:11434/v1": ["llama3"]})


def fill(home: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        file.chmod(0o600)
    home.mkdir(exist_ok=True)
    return home


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"config.toml": ""},
        {"config.toml": "", ".git/HEAD": "", ".gitignore": "", ".DS_Store": ""},
        {"config.toml": "", ".config.toml.swp": "", "config.toml~": ""},
        {"notes.txt": "", "content/page.md": "", ".bashrc": ""},
        {"data/lost+found/x": ""},
        {"state/token": "t" * 43, "config.toml.old": ""},
        {"state/daemon.lock": "", "state/notes": "", "notes.txt": ""},
        {"state/log/byok.log": "", "notes.txt": ""},
        {"data/vault.json": "{}", "notes.txt": ""},
        {"state/models.json": MODELS},
        {"state/models.json": '{"a@b": ["m", {"id": "n", "window": 9000}]}'},
        {"state/profiles.json": '{"version": 1, "profiles": {}}'},
        {"state/profiles.json": "damaged"},
        {"state/provider_data.db": "", "state/provider_data.db-wal": ""},
        {"state/journal.db": "", "state/journal.db-wal": ""},
        {"state/metrics-token": "t" * 43, "state/.metrics-token.a1b2c3d4": ""},
        {"state/dashboard-token": "t" * 43, "state/.owner-secret.a1b2c3d4": ""},
        {"state/client_settings/vscode-0/manifest.json": "{}"},
        {"state/.token.a1b2c3d4": ""},
        {"data/data.db": "", "data/data.db-wal": "", "data/index/meta.json": ""},
        {"data/vectors.db": "", "data/vectors.db-wal": "", "data/vectors/a.rows": ""},
    ],
    ids=lambda files: ",".join(files) or "empty",
)
def test_byok_home_that_byok_made_is_used(
    tmp_path: Path, files: dict[str, str]
) -> None:
    check_home(fill(tmp_path / "home", files))


def test_byok_home_that_is_not_there_is_used(tmp_path: Path) -> None:
    check_home(tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"state/models.json": '{"mine": 1}'}, "state/models.json"),
        ({"state/models.json": "[]"}, "state/models.json"),
        ({"state/models.json": '{"a": [{"name": "m"}]}'}, "state/models.json"),
        ({"state/profiles.json": '{"mine": 1}'}, "state/profiles.json"),
        ({"state/models.json": "not JSON"}, "state/models.json"),
        ({"state/terraform.tfstate": ""}, "state/terraform.tfstate"),
        ({"data/rows.csv": ""}, "data/rows.csv"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_byok_home_with_other_files_is_refused(
    tmp_path: Path, files: dict[str, str], named: str
) -> None:
    home = fill(tmp_path / "home", files)
    with pytest.raises(ConfigError, match="not a file of byok's") as caught:
        find_paths({"BYOK_HOME": str(home)})
    assert f"where {named} is" in str(caught.value)
    assert str(home / "byok") in caught.value.hint
    left = {str(f.relative_to(home)) for f in home.rglob("*") if f.is_file()}
    assert left == set(files)


@pytest.mark.skipif(os.name == "nt", reason="modes and links of POSIX")
@pytest.mark.parametrize("proof", ["token open to others", "lock that is a link"])
def test_byok_home_is_not_proven_by_a_name_alone(tmp_path: Path, proof: str) -> None:
    home = fill(tmp_path / "home", {"notes.txt": "", "state/other": ""})
    if proof == "token open to others":
        (home / "state" / "token").write_text("t")
        (home / "state" / "token").chmod(0o644)
    else:
        (home / "state" / "daemon.lock").symlink_to(home / "notes.txt")
    with pytest.raises(ConfigError, match="state/other"):
        check_home(home)


@pytest.mark.skipif(os.name != "posix", reason="other systems have no such modes")
@pytest.mark.case("B166")
def test_a_folder_that_every_user_may_change_is_refused(tmp_path: Path) -> None:
    above = tmp_path / "above"
    home = above / "home"
    home.mkdir(parents=True)
    for place, mode, is_refused in (
        (home, 0o777, True),
        (home, 0o702, True),
        (home, 0o775, False),
        (home, 0o1777, False),
        (above, 0o777, True),
        (above, 0o1777, False),
    ):
        home.chmod(0o700)
        above.chmod(0o700)
        place.chmod(mode)
        for folder in (home, home / "not made yet"):
            refused = False
            try:
                check_owner(folder)
            except ConfigError:
                refused = True
            assert refused is is_refused, (place, oct(mode))
    above.chmod(0o777)
    with pytest.raises(ConfigError):
        find_paths({"BYOK_HOME": str(home)})


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away"
)
@pytest.mark.case("B166")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "above" / "home"
    home.mkdir(parents=True)
    for place in (home, home.parent):
        os.chown(place, 65534, -1)
        with pytest.raises(ConfigError):
            find_paths({"BYOK_HOME": str(home)})
        os.chown(place, 0, -1)
    assert find_paths({"BYOK_HOME": str(home)})
