"""Programs come from where the system keeps them, never from a repository."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from byok.core.platform.programs import clean_environment, find_program


def planted(folder: Path, name: str = "tool", mode: int = 0o755) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\n")
    program.chmod(mode)
    return program


@pytest.mark.case("B53")
def test_program_search_uses_only_absolute_path_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    planted(tmp_path)
    planted(tmp_path / "bin")
    assert find_program("tool", path=os.pathsep.join([".", "", "bin", "./bin"])) is None


@pytest.mark.case("B53")
def test_program_search_skips_the_current_folder_and_workspaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, root, good = tmp_path / "here", tmp_path / "root", tmp_path / "good"
    for folder in (here, root / "bin", good):
        planted(folder)
    planted(root, "tool.bat")
    link = tmp_path / "link"
    link.symlink_to(root / "bin")
    monkeypatch.chdir(here)
    path = os.pathsep.join(map(str, [here, root / "bin", link, good]))
    assert find_program("tool", path=path, never=[root]) == str(good / "tool")


@pytest.mark.case("B53")
def test_program_search_skips_the_project_around_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `npm run` and direnv put its folders into PATH."""
    project, good = tmp_path / "home/project", tmp_path / "home/bin"
    (project / ".git").mkdir(parents=True)
    (project / "deep").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    packages = tmp_path / "elsewhere/node_modules/.bin"
    for folder in (project / "bin", project / "deep/bin", packages, good):
        planted(folder)
    path = os.pathsep.join(map(str, [project / "bin", packages, good]))
    monkeypatch.chdir(project / "deep")
    assert find_program("tool", path=path) == str(good / "tool")
    # Whoever stands at home has the programs that are installed there.
    for here in (tmp_path / "home", tmp_path):
        monkeypatch.chdir(here)
        assert find_program("tool", path=str(good)) == str(good / "tool")


@pytest.mark.case("B115")
def test_program_search_skips_odd_path_entries(tmp_path: Path) -> None:
    good = planted(tmp_path / "good")
    file, loop, pipe = tmp_path / "file", tmp_path / "loop", tmp_path / "pipe"
    file.touch()
    loop.symlink_to(loop)
    os.mkfifo(pipe)
    (tmp_path / "fifo").mkdir()
    os.mkfifo(tmp_path / "fifo" / "tool")
    names = [file, loop, pipe, tmp_path / "fifo", tmp_path / "none", "/" + "x" * 5000]
    path = os.pathsep.join(map(str, [*names, good.parent]))
    assert find_program("tool", path=path) == str(good)


SHUT = """
import os, sys
from byok.core.platform.programs import find_program
os.setgid(12345)
os.setuid(12345)
print(find_program("tool", path=sys.argv[1]))
"""


@pytest.mark.case("B115")
@pytest.mark.skipif(
    os.name == "nt" or os.geteuid() != 0, reason="only root can be somebody else"
)
def test_program_search_skips_a_folder_of_another_user(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        planted(folder / "shut" / "bin")
        good = planted(folder / "good")
        good.parent.chmod(0o755)  # whatever umask a test has left
        (folder / "shut").chmod(0o700)
        path = os.pathsep.join([str(folder / "shut" / "bin"), str(good.parent)])
        told = subprocess.run(
            [sys.executable, "-c", SHUT, path],
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
            check=False,
        )
    assert told.stdout == f"{good}\n", told.stderr


@pytest.mark.case("B115")
def test_program_search_works_without_a_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, gone = planted(tmp_path / "good"), tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert find_program("tool", path=str(good.parent)) == str(good)


@pytest.mark.case("B52")
def test_program_environment_has_nothing_of_the_callers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", "/x")
    monkeypatch.setenv("GIT_DIR", "/x")
    found = clean_environment({"EXTRA": "1"})
    assert set(found) - {"SYSTEMROOT"} == {"PATH", "LANG", "EXTRA"}
