"""Which folders may be workspaces."""

from pathlib import Path

import pytest

from byok.errors import ConfigError
from byok.index.files.roots import check_root, rules_of
from byok.index.options import IndexOptions
from byok.index.types import SkipReason


@pytest.mark.parametrize("path", ["/", "~", "none", "\0", "x" * 4000])
def test_workspace_root_that_is_not_allowed_is_refused(path: str) -> None:
    with pytest.raises(ConfigError):
        check_root(Path(path))


def test_workspace_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(ConfigError, match="not a folder"):
        check_root(tmp_path / "a")


def test_workspace_root_is_its_real_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert check_root(tmp_path / "link") == check_root(tmp_path / "real")


def test_workspace_rules_come_from_the_folder_and_from_the_user(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.log\n")
    options = IndexOptions(
        allow_secret=["*.pem"], extensions=["py"], own_folders=[tmp_path / "byok"]
    )
    rules = rules_of(tmp_path, options)
    assert rules.reason("a.py") is None
    assert rules.reason("a.log") is SkipReason.IGNORED
    assert rules.reason("a.c") is SkipReason.EXTENSION
    assert rules.reason("byok/a.py") is SkipReason.SECRET
    assert rules.reason("id_rsa") is SkipReason.SECRET
    assert rules.reason("a.pem") is not SkipReason.SECRET
