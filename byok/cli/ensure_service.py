"""Start the daemon, as a service or by itself, and wait until it answers."""

import socket
import time
from typing import TYPE_CHECKING

from byok.cli.output import tell
from byok.errors import ByokError, CannotStart, DaemonGone, NotReady
from byok.platform.paths import Paths

if TYPE_CHECKING:
    from byok.daemon.instance import Instance

END_IT = "To end it: byok stop"
_SECONDS = 60.0
_PAUSE = 0.2
_CONNECT_SECONDS = 1.0


def find_or_start(paths: Paths) -> "Instance | None":
    """Return the daemon; where none runs, that of the installed service, started now.

    Raises:
        NotReady: a process holds the daemon's lock but fails the challenge.
    """
    from byok.cli.ask import refuse_if_silent
    from byok.daemon_client.find import find_daemon

    daemon = find_daemon(paths)
    if daemon is not None:
        return daemon
    refuse_if_silent(paths)
    return start_service(paths)


def require_daemon(paths: Paths, *, start: bool = False) -> "Instance":
    """Return the daemon that has proved itself; an installed service is started.

    `start` starts one in the background if there is none. Only this daemon's address
    may be given away together with the token.

    Raises:
        CannotStart: another program listens on its port.
        DaemonGone: it is not running.
        NotReady: a process holds the daemon's lock but fails the challenge.
    """
    from byok.cli.command_context import load

    daemon = find_or_start(paths)
    if daemon is not None:
        return daemon
    port = load()[0].server.port
    if is_taken(port):
        raise _stranger_error(port)
    if start:
        daemon = start_in_background(paths, port)
        tell(f"byok runs in the background now. {END_IT}")
        return daemon
    raise DaemonGone("byok is not running.", hint="Start it: byok serve")


def refuse_stranger(paths: Paths) -> None:
    """Do nothing if the daemon has proved itself, or nobody is at its port.

    Raises:
        CannotStart: another program listens there.
    """
    from byok.cli.command_context import load
    from byok.daemon_client.find import find_daemon

    if find_daemon(paths) is not None:
        return
    port = load()[0].server.port
    # A service manager that waits for the first request is no stranger.
    if is_taken(port) and find_or_start(paths) is None:
        raise _stranger_error(port)


def _stranger_error(port: int) -> CannotStart:
    return CannotStart(
        f"Another program listens on port {port}. It is not your byok.",
        code="stranger_on_port",
        hint="End it, or choose another port for byok: server.port. If clients were "
        "pointed at this port, it may have their token: byok token rotate",
    )


def is_taken(port: int) -> bool:
    """Tell whether a program accepts connections at a port of this machine."""
    return port > 0 and any(_answers(host, port) for host in ("127.0.0.1", "::1"))


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()
    except TimeoutError:
        return True  # it listens, and is busy
    except OSError:
        return False
    return True


def start_service(paths: Paths) -> "Instance | None":
    """Start the service if one is installed for these paths; return its daemon.

    A service that does not start is told on stderr: the caller starts a daemon itself.
    """
    from byok.service.control import UserService

    try:
        service = UserService.of_this_machine(paths)
        if not service.is_installed():
            return None
        service.start()
        return wait_for_daemon(paths)
    except ByokError as error:
        tell(f"byok's service did not start: {error.sentence}")
        return None


def start_in_background(paths: Paths, port: int) -> "Instance":
    """Start a daemon that outlives this command.

    Raises:
        CannotStart: the port is taken.
        NotReady: it does not answer within a minute.
    """
    from byok.daemon.sockets import listen
    from byok.daemon_client.find import find_daemon
    from byok.daemon_client.start import Starter, daemon_command

    for sock in listen(port):
        sock.close()
    starter = Starter(daemon_command(None), paths.state_dir)
    starter.start()
    deadline = time.monotonic() + _SECONDS
    while (daemon := find_daemon(paths, 0)) is None:
        if time.monotonic() >= deadline:
            raise NotReady("byok did not start.", hint="See why: byok serve")
        time.sleep(_PAUSE)
    return daemon


def is_started_by_requests(paths: Paths) -> bool:
    """Tell whether a service is installed that a request starts, as systemd does."""
    from byok.service.control import UserService

    try:
        service = UserService.of_this_machine(paths)
        return service.system.starts_on_request and service.is_installed()
    except ByokError:  # nothing of byok's is there
        return False


def wait_for_daemon(paths: Paths, *, other_than: str = "") -> "Instance":
    """Return the daemon once it passes the challenge; not the instance `other_than`.

    Raises:
        NotReady: it does not within a minute.
    """
    from byok.daemon_client.find import find_daemon

    deadline = time.monotonic() + _SECONDS
    while True:
        daemon = find_daemon(paths, 0)
        if daemon is not None and daemon.instance != other_than:
            return daemon
        if time.monotonic() >= deadline:
            raise NotReady(
                "The service was started, and byok does not answer.",
                code="service",
                hint="See why: byok service logs",
            )
        time.sleep(_PAUSE)
