"""Code of a repository is never run: not by the program, not by a process it starts."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.fakes.patience import START
from tests.fakes.program import ROOT

pytestmark = pytest.mark.slow
QUESTION = "where is the oven heated before baking"
SCRIPT = Path(sys.executable).with_name("byok")
MODULE = [sys.executable, "-m", "byok"]
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}


class Planted:
    """A repository that holds a module of every name, and says who ran one."""

    def __init__(self, folder: Path, without: set[str]) -> None:
        self.root = folder / "repository"
        self.marker = folder / "was-here"
        self.root.mkdir()
        code = (
            f"import os\nwith open({str(self.marker)!r}, 'a') as f:\n"
            "    print(__name__, os.getpid(), file=f)\n"
        )
        for name in module_names() - without:
            if name.isidentifier():
                (self.root / f"{name}.py").write_text(code)
        for name in ("rg", "git", "bin/rg", "bin/git"):
            program = self.root / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(f"#!/bin/sh\necho {name} >> '{self.marker}'\n")
            program.chmod(0o755)
        (self.root / "oven.py").write_text(
            "def preheat(degrees):\n    '''Heat the oven before baking.'''\n"
        )
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)

    def check(self) -> None:
        """Nobody ran any of it."""
        assert not self.marker.exists(), self.marker.read_text()


@cache
def module_names() -> frozenset[str]:
    """Return what byok could import here, by the name of its file or folder."""
    installed = packages_distributions()
    return frozenset({*sys.stdlib_module_names, *installed, "sitecustomize"})


def environment(root: Path) -> dict[str, str]:
    """Return that of a user whose PATH has the repository, and the current folder."""
    path = os.pathsep.join((".", str(root / "bin"), str(root), os.environ["PATH"]))
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return {**kept, "PATH": path}


def loaded(folder: Path) -> list[str]:
    """Return the modules that Python itself loads for `-m`."""
    code = "import runpy, site, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.fixture
def command(request: pytest.FixtureRequest) -> list[str]:
    if request.param == "module":
        return MODULE
    if not SCRIPT.exists():
        pytest.skip("the program byok is not installed beside this Python")
    return [str(SCRIPT)]


@pytest.fixture
def planted(tmp_path: Path, command: list[str]) -> Planted:
    without = {"oven"}
    if command == MODULE:
        without |= {"byok", *loaded(tmp_path)}
    return Planted(tmp_path, without)


def run(
    command: list[str],
    *arguments: str,
    root: Path,
    here: Path | None = None,
    env: Mapping[str, str] | None = None,
    fails: bool = False,
) -> str:
    """Run a command in the repository, or `here` with the repository in PATH."""
    done = subprocess.run(
        [*command, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        cwd=here or root,
        env={**environment(root), **(env or {})},
        timeout=START,
        check=False,
    )
    assert fails or done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def serving(
    command: list[str],
    root: Path,
    *arguments: str,
    here: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Iterator[None]:
    process = subprocess.Popen(
        [*command, "serve", "--upstream", "demo", "--port", "0", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=here or root,
        env={**environment(root), **(env or {})},
    )
    with process:
        try:
            assert process.stdout is not None
            assert b"is listening" in process.stdout.readline()
            yield
        finally:
            process.terminate()


@pytest.mark.case("B61", "B109")
@pytest.mark.parametrize("command", ["script"], indirect=True)
def test_planted_code_is_not_run_by_a_search(
    command: list[str], planted: Planted
) -> None:
    out = run(command, "search", QUESTION, "-w", ".", root=planted.root)
    assert "def preheat(degrees)" in out
    planted.check()


@pytest.mark.case("B61", "B109")
@pytest.mark.parametrize("command", ["module"], indirect=True)
def test_planted_code_is_not_run_by_a_daemon_started_in_the_repository(
    command: list[str], planted: Planted
) -> None:
    with serving(command, planted.root, "--workspace", "."):
        out = run(command, "search", QUESTION, "-w", ".", root=planted.root)
        assert "def preheat(degrees)" in out
        assert "is listening" in run(command, "restart", root=planted.root)
        deadline, tracked = time.monotonic() + START, 0
        while tracked <= 100:  # it may still be scanning
            assert time.monotonic() < deadline
            shown = run(command, "index", "status", "--json", root=planted.root)
            tracked = json.loads(shown)["workspaces"][0]["files_tracked"]
    planted.check()


@pytest.mark.case("B61", "B109")
@pytest.mark.parametrize("command", ["script"], indirect=True)
def test_planted_code_is_not_run_when_its_repository_is_added(
    command: list[str], planted: Planted
) -> None:
    with serving(command, ROOT):
        added = run(command, "index", "add", ".", root=planted.root)
        assert "files indexed" in added
        out = run(command, "search", QUESTION, root=planted.root)
        assert "def preheat(degrees)" in out
    planted.check()


@pytest.mark.case("B61", "B109")
@pytest.mark.parametrize("command", ["module"], indirect=True)
def test_planted_code_is_not_run_by_an_mcp_server(
    command: list[str], planted: Planted
) -> None:
    request = {"information_request": QUESTION}
    call = {"name": "codebase-retrieval", "arguments": request}
    lines: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    ]
    process = subprocess.Popen(
        [*command, "mcp", "-w", "."],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        cwd=planted.root,
        env=environment(planted.root),
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in lines:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **line}) + "\n")
        process.stdin.flush()
        answers = (json.loads(line) for line in process.stdout)
        answer = next(a for a in answers if a.get("id") == 2)
        assert "def preheat(degrees)" in str(answer["result"])
        process.stdin.close()
        process.stdin = None
    planted.check()


@pytest.mark.case("B109")
@pytest.mark.parametrize("command", ["module"], indirect=True)
def test_planted_programs_are_not_run_by_who_has_them_in_the_path(
    command: list[str], planted: Planted, tmp_path: Path
) -> None:
    """Started elsewhere, with the repository in PATH, added by `byok index add`."""
    here, other = tmp_path / "here", tmp_path / "other"
    here.mkdir()
    other.mkdir()
    (other / "kiln.py").write_text("def fire(degrees):\n    return degrees\n")
    subprocess.run(["git", "init", "-q"], cwd=other, check=True)
    env = {"BYOK_RETRIEVAL__MODE": "ripgrep"}
    byok = partial(run, command, root=planted.root, here=here, env=env)
    with serving(command, planted.root, here=here, env=env):
        for folder in (planted.root, other):
            byok("index", "add", str(folder))
        out = byok("search", QUESTION, "-w", str(planted.root))
        assert "def preheat(degrees)" in out
        assert "def fire(degrees)" in byok("search", "fire", "-w", str(other))
    byok("search", QUESTION, "-w", str(planted.root))  # without a daemon
    byok("doctor", fails=True)
    planted.check()


@pytest.mark.case("B109")
@pytest.mark.parametrize("command", ["module"], indirect=True)
def test_planted_code_is_not_imported_by_a_python_path(
    command: list[str], planted: Planted, tmp_path: Path
) -> None:
    """What Python itself loads it looks for there; the rest is byok's concern.

    Of the three names of the folder Python makes one before byok sees any.
    """
    for name in ("sitecustomize", "usercustomize", "encodings"):
        (planted.root / f"{name}.py").unlink(missing_ok=True)
    for name in loaded(tmp_path):
        (planted.root / f"{name}.py").unlink(missing_ok=True)
    value = os.pathsep.join(("", ".", str(planted.root), str(ROOT)))
    out = run(
        command,
        *("search", QUESTION, "-w", "."),
        root=planted.root,
        env={"PYTHONPATH": value},
    )
    assert "def preheat(degrees)" in out
    planted.check()
