"""Checks of the port: byok has it, or can have it, on both loopback addresses."""

import errno
import os
import socket
import sys
from collections.abc import Iterable, Mapping

from byok.daemon.challenge import verify_daemon
from byok.daemon.instance import Instance
from byok.daemon.token import read_token
from byok.doctor.background import in_background
from byok.doctor.port_owner import PortOwner, find_owner
from byok.doctor.results import CannotCheck, CheckResult, doubtful, good, skip, wrong
from byok.doctor.surroundings import Surroundings

_PLACES = {"127.0.0.1": socket.AF_INET, "::1": socket.AF_INET6}
_MISSING = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)  # there is no such address here
_FINDERS = {
    "linux": "ss -ltnp 'sport = :{port}'",
    "win32": "netstat -ano -p tcp",
}
_FINDER = "lsof -nP -iTCP:{port} -sTCP:LISTEN"  # of the others


async def check_port(around: Surroundings, about: str) -> CheckResult:
    """Check that byok has the port, or can have it, on both loopback addresses."""
    del about
    daemon = await around.daemon()
    port = daemon.port if daemon else (await around.settings()).server.port
    if not port:
        return skip("server.port is 0: any free port is taken at the start")
    if daemon:
        codes = await in_background(lambda: _strangers(around, daemon))
    else:
        codes = await in_background(lambda: _try_to_bind(port))
    missing = [host for host, code in codes.items() if code in _MISSING]
    taken = [host for host, code in codes.items() if code and host not in missing]
    if taken:
        return await in_background(lambda: _judge(around, taken, port, codes))
    free = [host for host in codes if host not in missing]
    said = f"{_join(free, port)} free"
    if daemon:
        said = f"byok answers at {_join(free, port)}"
        if port != (wanted := await _wanted_port(around)):
            said += f", the settings say {wanted}"
    return good(said + "".join(f"; there is no {host} here" for host in missing))


async def _wanted_port(around: Surroundings) -> int:
    try:
        return (await around.settings()).server.port
    except CannotCheck:
        return 0


def _join(hosts: Iterable[str], port: int) -> str:
    shown = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host in hosts)
    return " and ".join(shown)


def _judge(
    around: Surroundings, taken: list[str], port: int, codes: Mapping[str, int]
) -> CheckResult:
    """Say who has the port."""
    where = _join(taken, port)
    if errno.EACCES in (codes[host] for host in taken):
        return wrong(f"{where} is reserved by the system", "Set server.port to another")
    owner = _owner(around, taken, port)
    if owner and owner.is_systemd:
        return good(f"systemd listens at {where}: the first request starts byok")
    who = f" ({owner.name}, pid {owner.pid})" if owner else ""
    finder = _FINDERS.get(sys.platform, _FINDER).format(port=port)
    return wrong(
        f"{where} is taken by another program{who}",
        f"End it ({finder} names it), or set server.port to another. If clients were "
        "pointed at this port, it may have their token: byok token rotate",
    )


def _owner(around: Surroundings, hosts: list[str], port: int) -> PortOwner | None:
    proc = around.machine.proc
    found = (find_owner(proc, _PLACES[host], host, port) for host in hosts)
    return next((owner for owner in found if owner), None)


def _strangers(around: Surroundings, daemon: Instance) -> dict[str, int]:
    """Return an error number for each address, 0 where the daemon proves itself."""
    secret = read_token(around.paths.owner_secret)
    codes = {host: _bind_error(host, 0) for host in _PLACES}
    return {
        host: errno.EADDRINUSE
        if code not in _MISSING and not verify_daemon(daemon, secret, host)
        else code
        for host, code in codes.items()
    }


def _try_to_bind(port: int) -> dict[str, int]:
    """Bind as the daemon would, and let go at once; return the error numbers."""
    return {host: _bind_error(host, port) for host in _PLACES}


def _bind_error(host: str, port: int) -> int:
    family = _PLACES[host]
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
    return host in _PLACES or host.startswith("127.")
