"""What a process asks for itself; tried in processes of their own."""

import os
import subprocess
import sys

import pytest

from tests.fakes.patience import START

pytest.importorskip("resource", reason="this system has no such limits")


def run(code: str) -> str:
    lines = ["import os, resource", "from byok.core.platform.process import *", code]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        timeout=START,
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


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc keeps them")
def test_large_blocks_go_back_to_the_system() -> None:
    told = run(
        "give_back_large_memory()\n"
        "def resident():\n"
        "    pages = int(open('/proc/self/statm').read().split()[1])\n"
        "    return pages * os.sysconf('SC_PAGE_SIZE')\n"
        "one = b'x' * 24_000_000\n"
        "del one\n"  # from here on glibc would keep blocks of this size
        "before = resident()\n"
        "mixed = [(b'x' * 1_000_000, b'y' * 2_000) for _ in range(100)]\n"
        "small = [pair[1] for pair in mixed]\n"
        "most = resident()\n"
        "del mixed\n"
        "print(most - before > 90_000_000, resident() - before < 20_000_000)"
    )
    assert told == "True True\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc keeps them")
def test_what_is_free_between_blocks_in_use_goes_back_to_the_system() -> None:
    told = run(
        "def resident():\n"
        "    pages = int(open('/proc/self/statm').read().split()[1])\n"
        "    return pages * os.sysconf('SC_PAGE_SIZE')\n"
        "mixed = [b'x' * 20_000 for _ in range(4_000)]\n"
        "kept = mixed[::100]\n"
        "mixed.clear()\n"
        "before = resident()\n"
        "give_back_free_memory()\n"
        "print(before - resident() > 50_000_000, len(kept))"
    )
    assert told == "True 40\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux does so")
def test_a_process_whose_parent_is_gone_already_ends() -> None:
    assert run(f"end_with({os.getpid()})\nprint('lives')") == "lives\n"
    assert run("end_with(1 + os.getppid())\nprint('lives')") == ""
