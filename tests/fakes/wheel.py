"""byok as its users have it: the wheel, installed apart from the clone."""

import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.fakes.program import ROOT


def build_wheel(folder: Path) -> Path:
    """Build the wheel of the clone; needs no registry."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d"]
    subprocess.run([*build, str(folder)], cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def install_wheel(wheel: Path, venv: Path) -> None:
    """Make a virtual environment with the wheel in it.

    What byok needs comes from the environment of the tests, so that nothing is fetched;
    the clone itself is not in that, as it is installed editable there.
    """
    make = [sys.executable, "-m", "venv", "--without-pip", str(venv)]
    subprocess.run(make, check=True, capture_output=True)
    python = str(venv / "bin" / "python")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", python, "install", "--quiet"),
            *("--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)),
        ],
        check=True,
        capture_output=True,
    )
    [packages] = venv.glob("lib/python*/site-packages")
    rest = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "rest.pth").write_text("\n".join(sorted(rest)))
