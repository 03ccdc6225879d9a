"""Lack of memory: recognise it in all its forms, and avoid it.

Python raises MemoryError only if it allocates the memory itself. The system reports the
lack as an errno, the loader of libraries as an ImportError, and a thread without memory
for its stack is a RuntimeError. Libraries in C and Rust end the process instead. So if
the memory of byok has a limit, `has_room` checks it before they are used.
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

# Messages of Python, of the loader of libraries, of tree-sitter, of Rust and tantivy.
_SHORTAGE = re.compile(
    r"can't start new thread|Failed to spawn|MemoryError|Cannot allocate memory|"
    r"failed to map segment|failed to allocate|memory allocation of \d+|"
    r"os error 1[12]\b"
)
MEMORY_HINT = "Close other programs, or raise the limit on its memory (`ulimit -v`, or \
LimitAS and MemoryMax of a service) or on its threads (`ulimit -u`, or TasksMax)."
_M_ARENA_MAX = -8
_MAX_ARENAS = 2


def lacks_memory(error: BaseException) -> bool:
    """Tell whether an error of Python or of the system means a lack of memory."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, (RuntimeError, ImportError)):
        return speaks_of_memory(str(error))
    return isinstance(error, MemoryError)


def speaks_of_memory(text: str) -> bool:
    """Tell whether a message of a library or a program means a lack of memory."""
    return _SHORTAGE.search(text) is not None


def memory_is_short(purpose: str) -> NotReady:
    """Return the error for too little memory for a purpose."""
    return NotReady(
        f"byok has too little memory for {purpose}.", code="no_memory", hint=MEMORY_HINT
    )


def explain_import(error: ImportError, message: str, hint: str) -> ByokError:
    """Return the error for a package that cannot be loaded: `message`, or no memory."""
    if lacks_memory(error):
        return memory_is_short(f"the package {error.name}" if error.name else "this")
    return ConfigError(message, hint=hint)


def has_room(mebibytes: int) -> bool:
    """Tell whether this process may use so much more memory (Linux; else True)."""
    limit = memory_limit()
    if limit is None or sys.platform != "linux":
        return True
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return limit - used >= mebibytes * 2**20


def memory_limit() -> int | None:
    """Return the limit of this process's address space in bytes; None if unlimited."""
    if resource is None:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def fit_into_limit() -> None:
    """If memory has a limit, let threads share their arenas (glibc).

    Otherwise each thread reserves 64 MiB of addresses and uses little of them, so that
    a daemon of 100 MiB reaches a limit of a gigabyte.
    """
    if memory_limit() is not None and sys.platform == "linux":
        allocator = ctypes.CDLL(None)
        if hasattr(allocator, "mallopt"):
            allocator.mallopt(_M_ARENA_MAX, _MAX_ARENAS)
