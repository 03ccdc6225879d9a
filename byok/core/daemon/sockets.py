"""Listening sockets, byok's own or a service manager's: loopback only.

systemd binds the port and starts the daemon at the first connection; that waits in the
socket meanwhile. The sockets are the file descriptors from 3 on. `LISTEN_FDS` says how
many, `LISTEN_PID` for which process, `LISTEN_FDNAMES` what each is for. The variables
are removed, and the sockets close on exec, so that no program that byok starts takes
them for its own.

byok listens on loopback only, whoever opened the sockets. Anything else that is passed
is a mistake in somebody's unit, and ends the start.
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


def listen(port: int, passed: Sequence[socket.socket] = ()) -> list[socket.socket]:
    """Bind 127.0.0.1 and ::1; port 0 takes one that is free on both.

    Copies of sockets that were `passed` take the place of new ones, and their port that
    of `port`. A machine without IPv6 gets a warning and the IPv4 socket alone.

    Raises:
        CannotStart: another program has the port, or there is no 127.0.0.1.
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
        if error.errno == errno.EADDRNOTAVAIL and family is socket.AF_INET:
            raise CannotStart(
                f"This machine has no {host}, where clients ask byok.",
                code=_CODE,
                hint=f"As root: ip addr add {host}/8 dev lo",
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


# Tell systemd what the daemon does: it is ready, reads its settings, or ends.
#
# One datagram per message to the socket that `NOTIFY_SOCKET` names. Without it, or when
# nobody reads there, nothing happens: a daemon must not fail because of its supervisor.


_LONGEST_ADDRESS = 108  # of a UNIX socket


class Notifier:
    """Sends the state of this process to a service manager; "" is none."""

    def __init__(self, address: str = "") -> None:
        """Take the value of `NOTIFY_SOCKET`: an absolute path, or `@` and a name."""
        is_address = address[:1] in ("/", "@") and len(address) < _LONGEST_ADDRESS
        self._address = address if is_address and sys.platform == "linux" else ""

    def ready(self, status: str = "") -> None:
        """Requests are answered; `status` is one line for people."""
        self._send("READY=1", *([f"STATUS={status}"] if status.isprintable() else []))

    def reloading(self) -> None:
        """Settings are read again, or the program starts again; `ready` follows."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def handing_over(self, pid: int) -> None:
        """Another process is the service from now on; it tells when it is ready."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
        self._send(f"MAINPID={pid}")

    def stopping(self) -> None:
        """The end has begun."""
        self._send("STOPPING=1")

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        name = self._address
        place = f"\0{name[1:]}" if name.startswith("@") else name
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.connect(place)
                sender.send("\n".join(lines).encode())
        except OSError as error:
            _log.warning("the service manager was not told: %s", error.strerror)


NAME = "byok"
_FIRST = 3
_NAMES = frozenset(
    {NAME, "byok.socket", "unknown"}
)  # the others are systemd's defaults
_HOSTS: Mapping[int, str] = {
    socket.AF_INET: "127.0.0.1",
    socket.AF_INET6: "::1",
}
_VARIABLES = ("LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES")
_NOTIFY = "NOTIFY_SOCKET"


class Activation(Struct, frozen=True):
    """What a service manager gave this process; by default nothing.

    The `sockets` are listening TCP sockets on loopback, one a family, on one port;
    `notify` is where the manager is told.
    """

    sockets: tuple[socket.socket, ...] = ()
    notifier: Notifier = field(default_factory=Notifier)
    notify: str = ""

    @property
    def variables(self) -> dict[str, str]:
        """What a process that takes this one's place needs in its environment."""
        return {_NOTIFY: self.notify} if self.notify else {}


def take_activation(environ: MutableMapping[str, str] = os.environ) -> Activation:
    """Return what the service manager gave, and remove it from the environment.

    Raises:
        CannotStart: what was passed are not byok's sockets.
    """
    given = [environ.pop(name, "") for name in _VARIABLES]
    notify = environ.pop(_NOTIFY, "")
    sockets = adopt_sockets(_read_handles(*given))
    return Activation(sockets, Notifier(notify), notify)


def adopt_sockets(handles: Iterable[int]) -> tuple[socket.socket, ...]:
    """Return the listening sockets that were passed under these file descriptors.

    Raises:
        CannotStart: they are not byok's.
    """
    handles = tuple(handles)
    for handle in handles:
        _keep_from_children(handle)
    sockets = tuple(map(_open_socket, handles))
    _check_together(sockets)
    return sockets


def _read_handles(count: str, pid: str, names: str) -> Sequence[int]:
    """Return the passed file descriptors; none if they are for another process."""
    if not count or sys.platform == "win32":
        return ()
    if pid != str(os.getpid()):
        return ()
    if not (count.isascii() and count.isdigit() and len(count) < 9):
        raise _refusal("LISTEN_FDS is not a number")
    if int(count) > len(_HOSTS):
        raise _refusal(f"{int(count):,} were passed, and byok takes {len(_HOSTS)}")
    if names:
        given = names.split(":")
        if len(given) != int(count) or not _NAMES.issuperset(given):
            raise _refusal(f"LISTEN_FDNAMES is not {NAME!r} for each")
    return range(_FIRST, _FIRST + int(count))


def _keep_from_children(handle: int) -> None:
    try:
        os.set_inheritable(handle, False)
    except OSError as error:
        raise _refusal(f"descriptor {handle} is not open") from error


def _open_socket(handle: int) -> socket.socket:
    """Return a passed socket if byok may serve on it."""
    if not stat.S_ISSOCK(os.fstat(handle).st_mode):
        raise _refusal(f"descriptor {handle} is not a socket")
    sock = socket.socket(fileno=handle)
    problem = _problem_of(sock)
    if problem:
        sock.detach()  # it is not ours to close
        raise _refusal(f"descriptor {handle} {problem}")
    sock.setblocking(False)
    return sock


def _problem_of(sock: socket.socket) -> str:
    """Say why byok may not serve on a socket; "" if it may."""
    host = _HOSTS.get(sock.family)
    if (
        host is None
        or sock.type != socket.SOCK_STREAM
        or sock.proto not in _protocols()
    ):
        return "is not a TCP socket"
    if not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return "does not listen"
    if (bound := sock.getsockname()[0]) != host:
        return f"listens on {bound}, and byok on loopback only"
    return ""


def _protocols() -> tuple[int, ...]:
    return (socket.IPPROTO_TCP, getattr(socket, "IPPROTO_MPTCP", socket.IPPROTO_TCP))


def _check_together(sockets: Sequence[socket.socket]) -> None:
    if len({sock.family for sock in sockets}) != len(sockets):
        raise _refusal("two have the same address")
    if len({sock.getsockname()[1] for sock in sockets}) > 1:
        raise _refusal("they have different ports")


def _refusal(why: str) -> CannotStart:
    return CannotStart(
        f"The sockets that were passed to byok cannot be used: {why}.",
        code="passed_sockets",
        hint="Write the units again: byok service install. Or start it without them: "
        "byok serve.",
    )
