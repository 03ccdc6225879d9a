"""Protect and give back the memory of byok's processes, and end them with a parent."""

import ctypes
import os
import signal
import sys

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36
_M_MMAP_THRESHOLD = -3
_LARGE = 2**19  # bytes; above what one read of a connection brings


def keep_secrets_in_memory() -> None:
    """Disable core dumps, and reading of the memory by other processes of this user."""
    if resource is None:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def give_back_large_memory() -> None:
    """Let large blocks of memory go back to the system when they are freed (glibc).

    Without this, glibc keeps blocks of up to 32 MB after the first large one was freed;
    what is small lies between them then, and a daemon stays as large as its busiest
    minute was.
    """
    if sys.platform == "linux":
        allocator = ctypes.CDLL(None)
        if hasattr(allocator, "mallopt"):  # musl has none, and gives such blocks back
            allocator.mallopt(_M_MMAP_THRESHOLD, _LARGE)


def give_back_free_memory() -> None:
    """Let the system have what is free now, also between blocks in use (glibc).

    It takes milliseconds, in which other threads wait for memory: for moments of rest.
    """
    if sys.platform == "linux":
        allocator = ctypes.CDLL(None)
        if hasattr(allocator, "malloc_trim"):
            allocator.malloc_trim(0)


def adopt_orphans() -> None:
    """Let processes whose parent ends become children of this one (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_with(parent: int) -> None:
    """End this process as soon as its parent process ends (Linux only).

    Strictly speaking: as soon as the thread that started it ends.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it is gone already
            os.kill(os.getpid(), signal.SIGKILL)
