"""What a process asks for itself; tried in processes of their own."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("resource", reason="this system has no such limits")


def run(code: str) -> str:
    lines = ["import os, resource", "from byok.platform.process import *", code]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    return done.stdout or done.stderr


def test_no_core_is_dumped_and_no_other_process_reads_the_memory() -> None:
    told = run(
        "keep_secrets_in_memory()\n"
        "import ctypes, sys\n"
        "print(resource.getrlimit(resource.RLIMIT_CORE))\n"
        "linux = sys.platform == 'linux'\n"
        "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) if linux else 0)"
    )
    assert told == "(0, 0)\n0\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux does so")
def test_a_process_whose_parent_is_gone_already_ends() -> None:
    assert run(f"end_with({os.getpid()})\nprint('lives')") == "lives\n"
    assert run("end_with(1 + os.getppid())\nprint('lives')") == ""
