"""byok version."""

import platform

import pytest

from byok import __version__
from tests.fakes.commands import Cli
from tests.fakes.program import run_byok


@pytest.mark.parametrize("asked", ["version", "--version"])
def test_the_version_of_byok_and_of_python(cli: Cli, asked: str) -> None:
    done = cli(asked)
    line = f"byok {__version__} (Python {platform.python_version()})\n"
    assert (done.code, done.out, done.err) == (0, line, "")


def test_version_is_printed_by_a_process() -> None:
    done = run_byok("version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"byok {__version__} ")
