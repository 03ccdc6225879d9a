"""Protect and release the memory of byok's processes, and end them with a parent."""

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
_LARGE_BYTES = 2**19  # more than one read of a connection


def keep_secrets_in_memory() -> None:
    """Disable core dumps, and reading of the memory by other processes of this user."""
    if resource is None:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def give_back_large_memory() -> None:
    """Make glibc return large blocks of memory to the system when they are freed.

    Otherwise, once the first large block was freed, glibc keeps blocks of up to 32 MB.
    Small ones are allocated between them, and the daemon stays as large as in its
    busiest minute.
    """
    if sys.platform == "linux":
        allocator = ctypes.CDLL(None)
        if hasattr(allocator, "mallopt"):  # musl lacks it, and returns such blocks
            allocator.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


def give_back_free_memory() -> None:
    """Return free memory to the system, also between blocks in use (glibc).

    This blocks allocations of other threads for milliseconds: call it when idle.
    """
    if sys.platform == "linux":
        allocator = ctypes.CDLL(None)
        if hasattr(allocator, "malloc_trim"):
            allocator.malloc_trim(0)


def adopt_orphans() -> None:
    """Become the parent of descendants whose parent ends (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_with(parent: int) -> None:
    """End this process as soon as its parent process ends (Linux only).

    Strictly speaking: as soon as the thread that started it ends.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it has ended already
            os.kill(os.getpid(), signal.SIGKILL)
