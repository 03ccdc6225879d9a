"""Lack of memory: told from other failures, whatever form it comes in.

Python raises MemoryError only where it asks for memory itself. The system says the
same with an errno, the loader of libraries with an ImportError, and a thread without
room for its stack is a RuntimeError. Libraries in C and Rust end the process instead.
So where the memory of byok has a limit, their room is looked for first (`has_room`).
"""

import ctypes
import errno
import re
import sys
from pathlib import Path

from byok.core.errors import ByokError, ConfigError, NotReady

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

# In the words of Python, of the loader, of tree-sitter, of Rust and of tantivy.
_SHORT = re.compile(
    r"can't start new thread|Failed to spawn|MemoryError|Cannot allocate memory|"
    r"failed to map segment|failed to allocate|memory allocation of \d+|"
    r"os error 1[12]\b"
)
MEMORY_HINT = "Close other programs, or raise the limit on its memory (`ulimit -v`, or \
LimitAS and MemoryMax of a service) or on its threads (`ulimit -u`, or TasksMax)."
_M_ARENA_MAX = -8
_FEW = 2


def lacks_memory(error: BaseException) -> bool:
    """Tell whether memory is what an error of Python or of the system lacks."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, (RuntimeError, ImportError)):
        return speaks_of_memory(str(error))
    return isinstance(error, MemoryError)


def speaks_of_memory(text: str) -> bool:
    """Tell whether what a library or a program printed is that memory is short."""
    return _SHORT.search(text) is not None


def memory_is_short(purpose: str) -> NotReady:
    """Return the error that there is too little memory for something."""
    return NotReady(
        f"byok has too little memory for {purpose}.", code="no_memory", hint=MEMORY_HINT
    )


def explain_import(error: ImportError, message: str, hint: str) -> ByokError:
    """Return why a package cannot be loaded: memory is short, or as `message` says."""
    if lacks_memory(error):
        return memory_is_short(f"the package {error.name}" if error.name else "this")
    return ConfigError(message, hint=hint)


def has_room(mebibytes: int) -> bool:
    """Tell whether a limit on this process's memory leaves so much (Linux)."""
    limit = memory_limit()
    if limit is None or sys.platform != "linux":
        return True
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return limit - used >= mebibytes * 2**20


def memory_limit() -> int | None:
    """Return the bytes of addresses that this process may use; None without a limit."""
    if resource is None:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def fit_into_limit() -> None:
    """Where memory has a limit, let threads share it (glibc).

    Without this each thread reserves 64 MiB of addresses of its own and uses little of
    it, so that a daemon of 100 MiB reaches a limit of a gigabyte.
    """
    if memory_limit() is not None and sys.platform == "linux":
        allocator = ctypes.CDLL(None)
        if hasattr(allocator, "mallopt"):
            allocator.mallopt(_M_ARENA_MAX, _FEW)
