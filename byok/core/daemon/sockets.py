"""Listening sockets: loopback only, within the limit of open files."""

import errno
import logging
import socket
from collections.abc import Mapping, Sequence

from byok.core.errors import CannotStart

_log = logging.getLogger(__name__)
BACKLOG = 128
_TRIES = 20
_CODE = "port"


def listen(port: int, passed: Sequence[socket.socket] = ()) -> list[socket.socket]:
    """Bind 127.0.0.1 and ::1; port 0 takes one that is free on both.

    Copies of sockets that were `passed` take the place of new ones, and their port that
    of `port`. A machine without IPv6 gets a warning and the IPv4 socket alone.

    Raises:
        CannotStart: another program has the port.
    """
    given: dict[int, socket.socket] = {sock.family: sock for sock in passed}
    if given:
        port = _port_of(passed, port)
    for _ in range(_TRIES):
        first = _copy_or_bind(given, socket.AF_INET, "127.0.0.1", port)
        chosen = first.getsockname()[1]
        try:
            return [first, _copy_or_bind(given, socket.AF_INET6, "::1", chosen)]
        except CannotStart:
            first.close()
            if port:
                raise
        except OSError as error:
            _log.warning("no IPv6 loopback here: %s", error.strerror)
            return [first]
    raise CannotStart("No port is free on both 127.0.0.1 and ::1.", code=_CODE)


def _port_of(passed: Sequence[socket.socket], wanted: int) -> int:
    """Return the port of passed sockets; clients know that one, so it counts."""
    port: int = passed[0].getsockname()[1]
    if wanted not in (0, port):
        _log.warning(
            "the service's socket has port %d, the settings say %d; to change it: "
            "byok service install",
            *(port, wanted),
        )
    return port


def _copy_or_bind(
    given: Mapping[int, socket.socket],
    family: socket.AddressFamily,
    host: str,
    port: int,
) -> socket.socket:
    """Return a copy of a given socket, so that it outlives this server's, or bind."""
    return given[family].dup() if family in given else _bind(family, host, port)


def _bind(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family is socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise CannotStart(
                f"Port {port} on {host} is taken by another program.",
                code=_CODE,
                hint="End it, or choose another: byok serve --port N. If byok's own "
                "service has it: byok service status. If clients were pointed at this "
                "port, that program may have their token: byok token rotate",
            ) from error
        if error.errno == errno.EACCES:
            raise CannotStart(
                f"Port {port} on {host} may not be used: the system reserves it.",
                code=_CODE,
                hint="Choose another: byok serve --port N.",
            ) from error
        raise
    sock.setblocking(False)
    return sock


# Limit connections to what the limit of open files allows.


try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

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
