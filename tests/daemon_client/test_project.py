"""Which workspace a folder belongs to."""

from pathlib import Path

import pytest

from byok.daemon_client.project import check_project, workspace_of
from byok.errors import ConfigError
from byok.index.files.roots import OwnFolders
from byok.platform.programs import project_of

OWN = OwnFolders([])


def folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def test_project_is_the_innermost_workspace_around_a_folder(tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    inner = folder(outer / "a/inner/deep")
    known = [outer, inner.parent, outer / "a/inn"]
    assert workspace_of(inner, known, OWN) == inner.parent
    assert workspace_of(outer / "a", known, OWN) == outer


def test_else_it_is_the_project_of_the_folder(tmp_path: Path) -> None:
    deep = folder(tmp_path / "project/a/b")
    folder(tmp_path / "project/.git")
    assert workspace_of(deep, [tmp_path / "other"], OWN) == tmp_path / "project"


def test_project_of_a_folder_that_can_be_no_workspace_is_none() -> None:
    with pytest.raises(ConfigError):
        workspace_of(Path("/"), [], OWN)


def test_a_folder_of_the_system_is_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = folder(tmp_path / "Windows/System32")
    assert check_project(inner, OWN) == inner
    monkeypatch.setenv("SYSTEMROOT", str(tmp_path / "Windows"))
    with pytest.raises(ConfigError):
        check_project(inner, OWN)


def test_the_project_of_a_folder_is_its_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bakery = folder(tmp_path / "home/work/bakery")
    folder(tmp_path / "home/work/.git")
    assert project_of(bakery) == bakery.parent
    alone = folder(tmp_path / "home/alone")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder(tmp_path / "home/.git")
    assert project_of(alone) == alone
