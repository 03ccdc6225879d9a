"""Modules are looked for anywhere but in the working folder."""

import os
import sys
from pathlib import Path

import pytest

from byok.core.platform.search_path import (
    leave_out_working_folder,
    without_working_folder,
)


def test_search_path_loses_the_working_folder_under_each_of_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, other = tmp_path / "here", tmp_path / "other"
    here.mkdir()
    (tmp_path / "link").symlink_to(here)
    monkeypatch.chdir(here)
    names = ["", ".", str(here), f"{here}/", str(tmp_path / "link"), "../here"]
    assert without_working_folder([*names, str(other)]) == [str(other)]


def test_search_path_keeps_the_folder_of_byok_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = ["", str(tmp_path)]
    assert without_working_folder(path, own=str(tmp_path)) == path


def test_search_path_keeps_pythons_own_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Path(os.__file__).parent
    for folder in (library, library / "json"):
        monkeypatch.chdir(folder)
        assert without_working_folder([str(folder)], own="/x") == [str(folder)]


@pytest.mark.skipif(os.name == "nt", reason="no folder goes while one is in it")
def test_search_path_without_a_working_folder_is_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert without_working_folder([str(tmp_path)]) == [str(tmp_path)]


def test_the_search_path_of_python_is_changed_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = list(sys.path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *before])
    monkeypatch.chdir(tmp_path)
    kept = sys.path
    leave_out_working_folder()
    assert sys.path is kept
    assert kept == [entry for entry in before if entry]
