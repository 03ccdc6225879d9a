"""Clones of one repository have one name, whatever their addresses look like."""

from pathlib import Path

import pytest

from byok.search.vectors.team.repository import repository_name, repository_names
from tests.fakes.repository import git

SAME = "git.example/owner/name"


@pytest.mark.parametrize(
    "address",
    [
        "https://git.example/owner/name",
        "https://git.example/owner/name.git",
        "https://user:token@git.example/Owner/Name.git/",
        "http://git.example:8080/owner/name",
        "ssh://git@git.example:2222/owner/name.git",
        "git://git.example/owner/name",
        "git@git.example:owner/name.git",
        "git.example:/owner/name",
        "GIT.example:owner/name\n",
    ],
)
def test_one_repository_has_one_name(address: str) -> None:
    assert repository_name(address) == SAME


@pytest.mark.parametrize(
    "address",
    [
        *[
            "",
            "/srv/git/name.git",
            "../name",
            "file:///srv/name",
            r"C:\name",
            "C:/name",
        ],
        *["https://", "https://git.example", "https://git.example/.git", "https://[x"],
        *["ext::sh -c touch% /tmp/x", "git.example:", "x" * 501, "a@b:c\0d"],
    ],
)
def test_what_is_no_address_has_no_name(address: str) -> None:
    assert repository_name(address) == ""


def test_folders_are_named_by_their_origin(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c", "d")]
    for folder in folders:
        folder.mkdir()
    for folder in folders[:3]:
        git(folder, "init", "-q")
    git(folders[0], "remote", "add", "origin", "git@git.example:owner/name.git")
    git(folders[1], "remote", "add", "origin", "https://git.example/owner/name")
    (folders[0] / "inner").mkdir()
    assert repository_names([*folders, folders[0] / "inner"]) == [SAME]
    assert repository_names([folders[2], folders[3], tmp_path / "none"]) == []
