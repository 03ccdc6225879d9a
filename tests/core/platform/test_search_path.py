"""Modules are looked for anywhere but in the working folder."""

from pathlib import Path

import pytest

from byok.core.platform.search_path import (
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
