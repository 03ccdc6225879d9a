"""Listening sockets, byok's own or a service manager's: loopback only.

systemd binds the port and starts the daemon at the first connection, which waits in the
socket meanwhile. The sockets are the file descriptors from 3 on. `LISTEN_FDS` says how
many, `LISTEN_PID` for which process, `LISTEN_FDNAMES` what each is for. The variables
are removed, and the sockets close on exec, so that no program that byok starts takes
them for its own.

byok listens on loopback only, whoever opened the sockets. Any other socket is a mistake
in the user's unit file, and ends the start.

The notifier tells systemd what the daemon does: it is ready, reloads, or stops. Each
message is one datagram to the socket in `NOTIFY_SOCKET`. Without the variable, or if
nobody reads the socket, nothing happens: a daemon must not fail because of its
supervisor.
"""

import errno
import logging
import os
import socket
import stat
import sys
import time
from collections.abc import Iterable, Mapping, MutableMapping, Sequence

from msgspec import Struct, field

from byok.core.errors import CannotStart

_log = logging.getLogger(__name__)
BACKLOG = 128
_TRIES = 20
_CODE = "port"
_TARGET_FILES = 8192
_MIN_FILES = 128
_OWN_FILES = 64  # for everything except connections
_MAX_ADDRESS_BYTES = 108  # of a UNIX socket
NAME = "byok"
_FIRST_HANDLE = 3
_NAMES = frozenset({NAME, "byok.socket", "unknown"})  # with systemd's defaults
_HOSTS: Mapping[int, str] = {
    socket.AF_INET: "127.0.0.1",
    socket.AF_INET6: "::1",
}
_PROTOCOLS = (
    socket.IPPROTO_TCP,
    getattr(socket, "IPPROTO_MPTCP", socket.IPPROTO_TCP),
)
_VARIABLES = ("LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES")
_NOTIFY = "NOTIFY_SOCKET"


def listen(port: int, inherited: Sequence[socket.socket] = ()) -> list[socket.socket]:
    """Bind 127.0.0.1 and ::1; port 0 chooses one that is free on both.

    Duplicates of `inherited` sockets replace new ones, and their port replaces `port`.
    Without IPv6, a warning is logged and only the IPv4 socket is returned.

    Raises:
        CannotStart: another program has the port, or there is no 127.0.0.1.
    """
    by_family: dict[int, socket.socket] = {sock.family: sock for sock in inherited}
    if by_family:
        port = _port_of(inherited, port)
    for _ in range(_TRIES):
        first = _copy_or_bind(by_family, socket.AF_INET, "127.0.0.1", port)
        bound_port = first.getsockname()[1]
        try:
            return [first, _copy_or_bind(by_family, socket.AF_INET6, "::1", bound_port)]
        except CannotStart:
            first.close()
            if port:
                raise
        except OSError as error:
            _log.warning("no IPv6 loopback here: %s", error.strerror)
            return [first]
    raise CannotStart("No port is free on both 127.0.0.1 and ::1.", code=_CODE)


def _port_of(inherited: Sequence[socket.socket], configured: int) -> int:
    """Return the port of inherited sockets, which takes precedence: clients know it."""
    port: int = inherited[0].getsockname()[1]
    if configured not in (0, port):
        _log.warning(
            "the service's socket has port %d, the settings say %d; to change it: "
            "byok service install",
            *(port, configured),
        )
    return port


def _copy_or_bind(
    by_family: Mapping[int, socket.socket],
    family: socket.AddressFamily,
    host: str,
    port: int,
) -> socket.socket:
    """Duplicate an inherited socket, so that it outlives the server's, or bind one."""
    return by_family[family].dup() if family in by_family else _bind(family, host, port)


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
        if error.errno == errno.EADDRNOTAVAIL and family is socket.AF_INET:
            raise CannotStart(
                f"This machine has no {host}, where clients ask byok.",
                code=_CODE,
                hint=f"As root: ip addr add {host}/8 dev lo",
            ) from error
        raise
    sock.setblocking(False)
    return sock


try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]


def max_connections(requested: int) -> int:
    """Raise the soft limit of open files; return how many connections it allows.

    Each connection may need a second one, to an upstream. An event loop that runs out
    of file descriptors would spin and log every attempt.

    Raises:
        CannotStart: the hard limit is too low.
    """
    if resource is None:
        return requested
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft != unlimited and soft < _TARGET_FILES:
        soft = _TARGET_FILES if hard == unlimited else min(hard, _TARGET_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == unlimited:
        return requested
    if soft < _MIN_FILES:
        raise CannotStart(
            f"Only {soft} files may be open at once; byok needs {_MIN_FILES}.",
            code="files",
            hint="Raise the limit: ulimit -n 1024.",
        )
    fitting = min(requested, (soft - _OWN_FILES) // 2)
    if fitting < requested:
        _log.warning("only %d connections at once: %d files may be open", fitting, soft)
    return fitting


class Notifier:
    """Sends the state of this process to a service manager, if there is one."""

    def __init__(self, address: str = "") -> None:
        """Use a value of `NOTIFY_SOCKET`: an absolute path, or `@` and a name."""
        is_address = address[:1] in ("/", "@") and len(address) < _MAX_ADDRESS_BYTES
        self._address = address if is_address and sys.platform == "linux" else ""

    def ready(self, status: str = "") -> None:
        """Report that requests are answered; `status` is one line for people."""
        self._send("READY=1", *([f"STATUS={status}"] if status.isprintable() else []))

    def reloading(self) -> None:
        """Report a reload of the settings, or a restart; `ready` follows."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def handing_over(self, pid: int) -> None:
        """Report another process as the service; it reports when it is ready."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
        self._send(f"MAINPID={pid}")

    def stopping(self) -> None:
        """Report that the daemon is stopping."""
        self._send("STOPPING=1")

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        name = self._address
        address = f"\0{name[1:]}" if name.startswith("@") else name
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.connect(address)
                sender.send("\n".join(lines).encode())
        except OSError as error:
            _log.warning("the service manager was not told: %s", error.strerror)


class Activation(Struct, frozen=True):
    """What a service manager passed to this process; by default nothing.

    The `sockets` are listening TCP sockets on loopback, one for each address family, on
    one port; `notify` is the address for the notifier.
    """

    sockets: tuple[socket.socket, ...] = ()
    notifier: Notifier = field(default_factory=Notifier)
    notify: str = ""

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that a successor of this process needs."""
        return {_NOTIFY: self.notify} if self.notify else {}


def pop_activation(environ: MutableMapping[str, str] = os.environ) -> Activation:
    """Return what the service manager passed, and remove it from the environment.

    Raises:
        CannotStart: the sockets that were passed are not byok's.
    """
    values = [environ.pop(name, "") for name in _VARIABLES]
    notify = environ.pop(_NOTIFY, "")
    sockets = adopt_sockets(_read_handles(*values))
    return Activation(sockets, Notifier(notify), notify)


def adopt_sockets(handles: Iterable[int]) -> tuple[socket.socket, ...]:
    """Return the listening sockets of these file descriptors.

    Raises:
        CannotStart: they are not sockets on which byok may serve.
    """
    handles = tuple(handles)
    for handle in handles:
        try:
            os.set_inheritable(handle, False)
        except OSError as error:
            raise _sockets_error(f"descriptor {handle} is not open") from error
    sockets = tuple(map(_open_socket, handles))
    if len({sock.family for sock in sockets}) != len(sockets):
        raise _sockets_error("two have the same address")
    if len({sock.getsockname()[1] for sock in sockets}) > 1:
        raise _sockets_error("they have different ports")
    return sockets


def _read_handles(count: str, pid: str, names: str) -> Sequence[int]:
    """Return the passed file descriptors; none if they are for another process."""
    if not count or sys.platform == "win32":
        return ()
    if pid != str(os.getpid()):
        return ()
    if not (count.isascii() and count.isdigit() and len(count) < 9):
        raise _sockets_error("LISTEN_FDS is not a number")
    if int(count) > len(_HOSTS):
        raise _sockets_error(
            f"{int(count):,} were passed, and byok takes {len(_HOSTS)}"
        )
    if names:
        given_names = names.split(":")
        if len(given_names) != int(count) or not _NAMES.issuperset(given_names):
            raise _sockets_error(f"LISTEN_FDNAMES is not {NAME!r} for each")
    return range(_FIRST_HANDLE, _FIRST_HANDLE + int(count))


def _open_socket(handle: int) -> socket.socket:
    """Return a passed socket if byok may serve on it."""
    if not stat.S_ISSOCK(os.fstat(handle).st_mode):
        raise _sockets_error(f"descriptor {handle} is not a socket")
    sock = socket.socket(fileno=handle)
    problem = _problem_of(sock)
    if problem:
        sock.detach()  # byok must not close a foreign socket
        raise _sockets_error(f"descriptor {handle} {problem}")
    sock.setblocking(False)
    return sock


def _problem_of(sock: socket.socket) -> str:
    """Return why byok may not serve on a socket, "" if it may."""
    host = _HOSTS.get(sock.family)
    if host is None or sock.type != socket.SOCK_STREAM or sock.proto not in _PROTOCOLS:
        return "is not a TCP socket"
    if not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return "does not listen"
    if (bound := sock.getsockname()[0]) != host:
        return f"listens on {bound}, and byok on loopback only"
    return ""


def _sockets_error(reason: str) -> CannotStart:
    return CannotStart(
        f"The sockets that were passed to byok cannot be used: {reason}.",
        code="passed_sockets",
        hint="Write the units again: byok service install. Or start it without them: "
        "byok serve.",
    )
