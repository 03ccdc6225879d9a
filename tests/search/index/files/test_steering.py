"""Files that steer a workspace, wherever they are."""

from pathlib import Path

import pytest

from byok.search.index.files.scan import Steering, steering_of
from tests.fakes.repository import Repository


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path / "none"))
    made = Repository(tmp_path.resolve() / "repo")
    made.commit("one", "pkg/a.py")
    return made


def test_steering_files_without_a_repository(tmp_path: Path) -> None:
    assert steering_of(tmp_path) == Steering(frozenset({".git"}), frozenset())
    assert Steering().folders == set()


def test_steering_files_of_a_repository_are_below_the_root(made: Repository) -> None:
    found = steering_of(made.root)
    assert found.rules == {".git", ".git/HEAD", ".git/info/exclude"}
    assert {".git/HEAD", ".git/logs/HEAD"} < found.commits
    assert {".git", ".git/info", ".git/logs"} <= found.folders


def test_steering_files_above_the_root_count_as_well(made: Repository) -> None:
    found = steering_of(made.root / "pkg")
    top = made.root.as_posix()
    assert {f"{top}/.gitignore", f"{top}/.git/info/exclude"} < found.rules
    assert f"{top}/.git/logs/HEAD" in found.commits
    assert {top, f"{top}/.git", f"{top}/.git/logs"} < found.folders
