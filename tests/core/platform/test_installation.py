"""How byok was installed, and commands as they are run there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from byok.cli import app
from byok.core.platform.installation import (
    Installation,
    Installer,
    make_pasteable,
    make_plain,
)

AWAY = Path("/home/me/my tools")
PYTHON = sys.executable
ROOT = Path(__file__).parents[3]


def installed(installer: Installer, source: str = "") -> Installation:
    return Installation(installer, source, AWAY)


def test_every_command_is_written_as_it_is_run_here() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert commands
    shown = {
        name: make_pasteable(f"Run: byok {name} X", "'/a b'/byok") for name in commands
    }
    assert shown == {name: f"Run: '/a b'/byok {name} X" for name in commands}
    plain = {name: make_plain(text, "'/a b'/byok") for name, text in shown.items()}
    assert plain == {name: f"Run: byok {name} X" for name in commands}


@pytest.mark.parametrize(
    "text",
    [
        *["byok is not running.", "byok's service has ended.", "byok searches code."],
        *["/opt/byok serve", "~/byok serve", "my-byok serve", "byok", "Byok serve"],
    ],
)
def test_what_is_no_command_stays_as_it_is(text: str) -> None:
    assert make_pasteable(text, "/opt/x/byok") == text


@pytest.mark.parametrize(
    ("installer", "upgrade", "extra", "remove"),
    [
        (
            Installer.PIP,
            [[PYTHON, "-m", "pip", "install", "--upgrade", "byokd"]],
            [[PYTHON, "-m", "pip", "install", "byokd[otel]"]],
            [[PYTHON, "-m", "pip", "uninstall", "-y", "byokd"]],
        ),
        (
            Installer.PIPX,
            [["pipx", "upgrade", "byokd"]],
            [["pipx", "install", "--force", "byokd[otel]"]],
            [["pipx", "uninstall", "byokd"]],
        ),
        (
            Installer.UV_TOOL,
            [["uv", "tool", "upgrade", "byokd"]],
            [["uv", "tool", "install", "--force", "byokd[otel]"]],
            [["uv", "tool", "uninstall", "byokd"]],
        ),
    ],
)
def test_each_installer_has_its_own_commands(
    installer: Installer,
    upgrade: list[list[str]],
    extra: list[list[str]],
    remove: list[list[str]],
) -> None:
    one = installed(installer)
    assert one.upgrade_commands() == upgrade
    assert one.extra_commands("otel") == extra
    assert one.removal_commands() == remove


@pytest.mark.skipif(sys.platform == "win32", reason="a script for sh")
def test_setup_prints_its_usage_without_making_an_environment(tmp_path: Path) -> None:
    """Only known purposes make one; other words and numbers of words are refused."""
    venv = tmp_path / "venv"
    env = {**os.environ, "BYOK_VENV": str(venv)}
    wanted = {"--help": 0, "-h": 0, "bogus": 2, "": 2, "run test": 2}
    codes = {}
    for words in wanted:
        command = [str(ROOT / "scripts" / "setup"), *words.split()]
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, check=False
        )
        codes[words] = done.returncode
        assert "run|test|lint|fuzz" in done.stderr
    assert codes == wanted
    assert not venv.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="a script for sh")
def test_install_makes_a_link_and_replaces_nothing(tmp_path: Path) -> None:
    venv, folder = tmp_path / "venv", tmp_path / "bin"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    (venv / "bin" / "byok").write_text("")
    project = (ROOT / "pyproject.toml").read_bytes()
    wanted = subprocess.run(["cksum"], input=project, capture_output=True, check=True)
    (venv / ".byok-run").write_bytes(wanted.stdout)  # as `scripts/setup run` leaves it

    def install() -> int:
        env = {**os.environ, "BYOK_VENV": str(venv)}
        command = [str(ROOT / "scripts" / "install"), str(folder)]
        return subprocess.run(
            command, env=env, capture_output=True, check=False
        ).returncode

    assert (install(), install()) == (0, 0)
    assert (folder / "byok").readlink() == venv / "bin" / "byok"
    (folder / "byok").unlink()
    (folder / "byok").write_text("mine")
    assert install() != 0
    assert (folder / "byok").read_text() == "mine"
