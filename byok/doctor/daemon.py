"""Checks of the daemon: that it is ours, of this version, and has its port."""

import errno
import socket

from byok import __version__
from byok.doctor.results import CheckResult, doubtful, good, wrong
from byok.doctor.surroundings import NoProof, Surroundings
from byok.errors import NotReady
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
    except NotReady as error:
        return wrong(str(error), error.hint or "byok restart")
    version = str(status.get("version", ""))
    if version != __version__:
        told = f"the daemon is byok {version or 'of an older version'}"
        return doubtful(f"{told}, this command is byok {__version__}", "byok restart")
    return good(f"byok {version}, as this command")
