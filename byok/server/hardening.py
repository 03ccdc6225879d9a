"""What a process that holds keys asks of the system."""

import ctypes
import logging
import sys

from byok.errors import ByokError

try:
    import resource
except ImportError:  # Windows has neither limit
    resource = None  # type: ignore[assignment]

_log = logging.getLogger(__name__)
_WANTED_FILES = 8192
_FEWEST_FILES = 128
_OWN_FILES = 64  # for everything that is no connection
_PR_SET_DUMPABLE = 4


class TooFewFiles(ByokError):
    """The system allows too few open files."""

    code = "files"


def keep_secrets_in_memory() -> None:
    """Allow no core dump, and no other process of this user to read the memory."""
    if resource is None:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def room_for_connections(wanted: int) -> int:
    """Raise the limit of open files, and return how many connections fit below it.

    Each may need a second one, to an upstream. A loop that runs out of descriptors
    would spin and write a line for every attempt.

    Raises:
        TooFewFiles: the hard limit leaves no room to work in.
    """
    if resource is None:
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft != unlimited and soft < _WANTED_FILES:
        soft = _WANTED_FILES if hard == unlimited else min(hard, _WANTED_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == unlimited:
        return wanted
    if soft < _FEWEST_FILES:
        raise TooFewFiles(
            f"Only {soft} files may be open at once; byok needs {_FEWEST_FILES}.",
            hint="Raise the limit: ulimit -n 1024.",
        )
    fitting = min(wanted, (soft - _OWN_FILES) // 2)
    if fitting < wanted:
        _log.warning("only %d connections at once: %d files may be open", fitting, soft)
    return fitting
