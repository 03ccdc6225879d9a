"""Programs come from where the system keeps them, never from a repository."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from byok.context.programs import clean_environment, find_program, kill_group


def planted(folder: Path, name: str = "tool", mode: int = 0o755) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\n")
    program.chmod(mode)
    return program


@pytest.mark.case("B53")
def test_only_absolute_entries_of_the_path_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    planted(tmp_path)
    planted(tmp_path / "bin")
    assert find_program("tool", path=os.pathsep.join([".", "", "bin", "./bin"])) is None


@pytest.mark.case("B53")
def test_the_current_folder_and_the_workspaces_do_not_count(
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


def test_a_file_that_cannot_be_run_is_passed_over(tmp_path: Path) -> None:
    planted(tmp_path / "a", mode=0o644)
    (tmp_path / "b" / "tool").mkdir(parents=True)
    path = os.pathsep.join([str(tmp_path / "a"), str(tmp_path / "b")])
    assert find_program("tool", path=path) is None


@pytest.mark.case("B52")
def test_the_environment_holds_nothing_of_the_callers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", "/x")
    monkeypatch.setenv("GIT_DIR", "/x")
    found = clean_environment({"EXTRA": "1"})
    assert set(found) - {"SYSTEMROOT"} == {"PATH", "LANG", "EXTRA"}


def test_killing_a_group_takes_the_children_too(tmp_path: Path) -> None:
    pipe = subprocess.Popen(
        ["/bin/sh", "-c", "sleep 60 & wait"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    kill_group(pipe.pid)
    output, _ = pipe.communicate(timeout=10)  # the child held the pipe
    assert output == b""
    assert pipe.returncode != 0


def test_killing_what_is_gone_is_no_error() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)
    gone.wait()
    kill_group(gone.pid)
