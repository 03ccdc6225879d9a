"""The newcomer's path, on a clone whose commands need no installation."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.newcomer import READY, SDK, SERVE, walk

pytestmark = pytest.mark.skipif(
    os.name != "posix" or shutil.which("git") is None, reason="a shell and git"
)


def repository(folder: Path, serve: str) -> Path:
    """Make a repository with the scripts of byok's, and `pip` as a word."""
    root = folder / "origin"
    (root / "scripts").mkdir(parents=True)
    (root / ".venv" / "bin").mkdir(parents=True)
    byok = f'exec {sys.executable} -P -m byok "$@"\n'
    python = f'case "$*" in "-m pip "*) ;; *) exec {sys.executable} "$@" ;; esac\n'
    for name, content in (
        ("scripts/serve", serve),
        (".venv/bin/byok", byok),
        (".venv/bin/python", python),
    ):
        file = root / name
        file.write_text(f"#!/usr/bin/env bash\n{content}")
        file.chmod(0o755)
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.com")
    for command in (("init", "-q"), ("add", "-Af"), (*identity, "commit", "-qm", "x")):
        subprocess.run(("git", *command), cwd=root, check=True)
    return root


def environment(folder: Path) -> dict[str, str]:
    home = {"BYOK_HOME": str(folder / "home"), "BYOK_SERVER__PORT": "0"}
    return {**os.environ, **home}


def test_the_path_ends_with_an_answer(tmp_path: Path) -> None:
    pytest.importorskip("auggie_sdk", reason="auggie-sdk is not installed")
    serve = f'exec {sys.executable} -P -m byok serve "$@"\n'
    origin = repository(tmp_path, serve)
    ticks = iter(range(100))
    steps = list(
        walk(str(origin), tmp_path, environment(tmp_path), clock=lambda: next(ticks))
    )
    assert [step.command for step in steps][1:3] == [SERVE, SDK]
    assert [step.seconds for step in steps] == [1, 1, 1, 1]
    assert steps[1].last_line.startswith(READY)
    assert "byok's demo" in steps[3].last_line
