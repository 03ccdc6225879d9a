"""Checks of the daemon: that it is ours, of this version, and has its port."""

import errno
import os
import socket

from byok import __version__
from byok.daemon.challenge import verify_daemon
from byok.daemon.instance import Instance
from byok.daemon.token import read_token
from byok.doctor.background import in_background
from byok.doctor.results import CannotCheck, CheckResult, doubtful, good, skip, wrong
from byok.doctor.surroundings import NoProof, Surroundings
from byok.errors import ByokError
from byok.routing import Service

_PLACES = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
_HOSTS = {host for _, host in _PLACES}
_MISSING = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)  # there is no such address here
_MINUTE = 60


async def check_daemon(around: Surroundings, about: str) -> CheckResult:
    """Check that a daemon runs, and proves to be this user's."""
    del about
    try:
        daemon = await around.daemon()
    except NoProof as error:
        return wrong(
            f"{error}",
            f"Try again; if it stays so, end the process whose pid is in "
            f"{around.paths.daemon}",
        )
    if daemon is None:
        return doubtful("it is not running", "byok serve")
    minutes = max(0.0, around.machine.clock() - daemon.started) / _MINUTE
    return good(f"pid {daemon.pid}, port {daemon.port}, for {minutes:,.0f} min")


async def check_daemon_version(around: Surroundings, about: str) -> CheckResult:
    """Check that the running daemon is of the version of this command."""
    del about
    try:
        status = await around.ask(Service.DAEMON)
    except ByokError as error:
        if error.code == "other_version":
            return wrong(f"it is another one than {__version__}", "byok restart")
        raise
    version = str(status.get("version", ""))
    if version != __version__:
        told = f"the daemon is byok {version or 'of an older version'}"
        return doubtful(f"{told}, this command is byok {__version__}", "byok restart")
    return good(f"byok {version}, as this command")


async def check_port(around: Surroundings, about: str) -> CheckResult:
    """Check that byok has the port, or can have it, on both loopback addresses."""
    del about
    daemon = await around.daemon()
    port = daemon.port if daemon else (await around.settings()).server.port
    if not port:
        return skip("server.port is 0: any free port is taken at the start")
    if daemon:
        taken, missing = await in_background(lambda: _strangers(around, daemon))
    else:
        taken, missing = await in_background(lambda: _try_to_bind(port))
    if taken:
        return wrong(
            f"{_places(taken, port)} is taken by another program",
            f"End it (ss -ltnp 'sport = :{port}' names it), or set server.port",
        )
    free = [host for host in sorted(_HOSTS) if host not in missing]
    said = f"byok answers at {_places(free, port)}"
    if not daemon:
        said = f"{_places(free, port)} is free"
    elif port != (wanted := await _wanted_port(around)):
        said += f", the settings say {wanted}"
    return good(said + "".join(f"; there is no {host} here" for host in missing))


async def _wanted_port(around: Surroundings) -> int:
    try:
        return (await around.settings()).server.port
    except CannotCheck:
        return 0


def _places(hosts: list[str], port: int) -> str:
    shown = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host in hosts)
    return " and ".join(shown)


def _strangers(around: Surroundings, daemon: Instance) -> tuple[list[str], list[str]]:
    """Return the addresses at which somebody else answers, and those that lack."""
    token = read_token(around.paths.token)
    missing = [host for family, host in _PLACES if not _is_local(family, host)]
    taken = [
        host
        for _, host in _PLACES
        if host not in missing and not verify_daemon(daemon, token, host)
    ]
    return taken, missing


def _is_local(family: socket.AddressFamily, host: str) -> bool:
    """Tell whether this machine has a loopback address; any free port will do."""
    return _bind_error(family, host, 0) not in _MISSING


def _try_to_bind(port: int) -> tuple[list[str], list[str]]:
    """Bind as the daemon would, and let go at once."""
    taken, missing = [], []
    for family, host in _PLACES:
        code = _bind_error(family, host, port)
        if code in _MISSING:
            missing.append(host)
        elif code:
            taken.append(host)
    return taken, missing


def _bind_error(family: socket.AddressFamily, host: str, port: int) -> int:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            if family is socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            if os.name == "posix":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((host, port))
    except OSError as error:
        return error.errno or errno.EINVAL
    return 0


async def check_localhost(around: Surroundings, about: str) -> CheckResult:
    """Check that the name localhost means this machine: clients may use it."""
    del around, about
    try:
        rows = await in_background(lambda: socket.getaddrinfo("localhost", None))
    except OSError:
        return doubtful(
            "the name localhost has no address",
            "Add it to the hosts file: 127.0.0.1 localhost",
        )
    found = [*dict.fromkeys(str(row[4][0]) for row in rows)]
    if others := [host for host in found if not _is_loopback(host)]:
        return wrong(
            f"localhost means {others[0]}: what clients send there is not for byok",
            "Correct localhost in the hosts file: 127.0.0.1 localhost",
        )
    return good(" and ".join(found))


def _is_loopback(host: str) -> bool:
    return host in _HOSTS or host.startswith("127.")
