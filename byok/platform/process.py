"""Protect the memory of byok's processes, and end them with their parent."""

import ctypes
import os
import signal
import sys

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4


def keep_secrets_in_memory() -> None:
    """Disable core dumps, and reading of the memory by other processes of this user."""
    if resource is None:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def end_with(parent: int) -> None:
    """End this process as soon as its parent process ends (Linux only).

    Strictly speaking: as soon as the thread that started it ends.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it is gone already
            os.kill(os.getpid(), signal.SIGKILL)
