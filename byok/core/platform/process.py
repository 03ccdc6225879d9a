"""This process: a lack of memory, memory that is protected or released, its parent.

Python raises MemoryError only if it allocates the memory itself. The system reports the
lack as an errno, the loader of libraries as an ImportError, and a thread without memory
for its stack is a RuntimeError. Libraries in C and Rust end the process instead. So if
the memory of byok has a limit, `has_room` checks it before they are used.
"""

import ctypes
import errno
import os
import re
import signal
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
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_LARGE_BYTES = 2**19  # more than one read of a connection
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
    if memory_limit() is not None:
        _call_glibc("mallopt", _M_ARENA_MAX, _MAX_ARENAS)


def give_back_large_memory() -> None:
    """Make glibc return large blocks of memory to the system when they are freed.

    Otherwise, once the first large block was freed, glibc keeps blocks of up to 32 MB.
    Small ones are allocated between them, and the daemon stays as large as in its
    busiest minute.
    """
    _call_glibc("mallopt", _M_MMAP_THRESHOLD, _LARGE_BYTES)


def give_back_free_memory() -> None:
    """Return free memory to the system, also between blocks in use (glibc).

    This blocks allocations of other threads for milliseconds: call it when idle.
    """
    _call_glibc("malloc_trim", 0)


def keep_secrets_in_memory() -> None:
    """Disable core dumps, and reading of the memory by other processes of this user."""
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _control_process(_PR_SET_DUMPABLE, 0)


def adopt_orphans() -> None:
    """Become the parent of descendants whose parent ends (Linux only)."""
    _control_process(_PR_SET_CHILD_SUBREAPER, 1)


def end_with(parent: int) -> None:
    """End this process as soon as its parent process ends (Linux only).

    Strictly speaking: as soon as the thread that started it ends.
    """
    _control_process(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if sys.platform == "linux" and os.getppid() != parent:  # it has ended already
        os.kill(os.getpid(), signal.SIGKILL)


def _call_glibc(function: str, *values: int) -> None:
    """Call a function of glibc; musl lacks those of its allocator, and needs none."""
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), function):
        getattr(library, function)(*values)


def _control_process(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
