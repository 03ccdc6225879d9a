"""What a process of byok asks of the system for itself."""

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
    """Allow no core dump, and no other process of this user to read the memory."""
    if resource is None:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def end_with(parent: int) -> None:
    """End at once when the process that started this one ends, where Linux runs.

    Strictly when its thread does that started it.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it is gone already
            os.kill(os.getpid(), signal.SIGKILL)
