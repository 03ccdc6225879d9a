"""Limit connections to what the limit of open files allows."""

import logging

from byok.errors import CannotStart

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

_log = logging.getLogger(__name__)
_WANTED_FILES = 8192
_FEWEST_FILES = 128
_OWN_FILES = 64  # for everything else than connections


def max_connections(wanted: int) -> int:
    """Raise the soft limit of open files, and return how many connections fit in it.

    Each may need a second one, to an upstream. An event loop that runs out of file
    descriptors would spin and log every attempt.

    Raises:
        CannotStart: the hard limit leaves no room to work in.
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
        raise CannotStart(
            f"Only {soft} files may be open at once; byok needs {_FEWEST_FILES}.",
            code="files",
            hint="Raise the limit: ulimit -n 1024.",
        )
    fitting = min(wanted, (soft - _OWN_FILES) // 2)
    if fitting < wanted:
        _log.warning("only %d connections at once: %d files may be open", fitting, soft)
    return fitting
