"""What byok starts sees no key of byok's."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.patience import until
from tests.fakes.program import children_of, serving
from tests.fakes.project import make_project
from tests.fakes.upstream import FakeUpstream, answer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]
SECRETS = {
    "BYOK_KEY_OTHER": "canary-own-variable-0123456789",
    "BYOK_VAULT_PASSPHRASE": "canary-passphrase-0123456789",
    "OPENAI_API_KEY": "canary-vendor-0123456789",
    "TEAM_API_KEY": "canary-named-0123456789",
}
STRANGERS = {**SECRETS, "GITHUB_TOKEN": "canary-of-another-program-0123456789"}


def witness(folder: Path, name: str, then: str) -> Path:
    """Make a program that notes its environment before it does its work."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    noted = folder / "noted"
    program.write_text(f"#!/bin/sh\necho {name} >> '{noted}'\nenv >> '{noted}'\n{then}")
    program.chmod(0o755)
    return noted


def configure(home: Path, url: str, mode: str, command: str) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(
        f'[upstreams.fake]\nbase_url = "{url}"\nmodel = "m"\n'
        f"api_key_cmd = ['{command}']\n[retrieval]\nmode = '{mode}'\n"
    )


async def command_of(pid: int) -> bytes:
    """Return the command of a parser; a new process has that of its parent at first."""
    command = Path(f"/proc/{pid}/cmdline")
    await until(lambda: b"byok.search.index.parse.worker" in command.read_bytes())
    return command.read_bytes()


@pytest.mark.case("B112")
async def test_parser_processes_hold_no_secret(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    project = make_project(tmp_path / "bakery")
    noted = witness(tmp_path / "bin", "key", "echo sk-from-the-command-0123456789\n")
    configure(tmp_path / "home", fake.url, "index", str(noted.with_name("key")))
    arguments = ("--workspace", str(project))
    async with serving(tmp_path / "home", *arguments, env=STRANGERS) as program:
        await program.until_complete()
        children = children_of(program.process.pid)
        assert children
        for pid in children:
            commands = await command_of(pid)
            try:
                environ = Path(f"/proc/{pid}/environ").read_bytes()
            except PermissionError:  # whoever is not root sees nothing at all
                continue
            told = environ.split(b"\0")
            assert {line.partition(b"=")[0] for line in told if line} <= {
                *(b"PATH", b"LANG", b"LC_ALL", b"LC_CTYPE")
            }
            assert b"canary" not in environ + commands


@pytest.mark.case("B112")
@pytest.mark.skipif(
    not (shutil.which("git") and shutil.which("rg")), reason="needs git and rg"
)
async def test_child_processes_git_ripgrep_and_key_command_see_no_key(
    tmp_path: Path, fake: FakeUpstream
) -> None:
    project = make_project(tmp_path / "bakery")
    shutil.rmtree(project / ".git")
    for git in (["init", "-q"], ["add", "."], ["commit", "-qm", "Bake"]):
        author = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *author, *git], cwd=project, check=True)
    folder = tmp_path / "bin"
    noted = witness(folder, "key", "echo sk-from-the-command-0123456789\n")
    for name in ("git", "rg"):
        witness(folder, name, f'exec {shutil.which(name)} "$@"\n')
    configure(tmp_path / "home", fake.url, "ripgrep", "key")
    fake.play(answer("Yes."))
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    environ = {**SECRETS, "PATH": path}
    arguments = ("--workspace", str(project))
    async with serving(tmp_path / "home", *arguments, env=environ) as program:
        await program.until_complete()
        asked = {"information_request": "preheat oven"}
        found = await program.post("/agents/codebase-retrieval", **asked)
        assert "preheat" in found.json["formatted_retrieval"]
        await program.check_well()
        await until(lambda: {"git", "rg", "key"} <= {*noted.read_text().splitlines()})
    lines = noted.read_text().splitlines()
    assert fake.headers[0]["Authorization"].endswith("command-0123456789")
    assert not [line for line in lines if "canary" in line]
